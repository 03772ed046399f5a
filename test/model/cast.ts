/**
 * Who takes part: processes, their names and sessions. A session is numbered `process * 100 + life`, lives
 * counting from 1, and its id is that number in 16 digits, so that either is had from the other.
 */
import type { MemberName, SessionId } from '../../src/core/ids.ts'
import type { Owner } from '../../src/core/partition-record.ts'

export const GROUP = 'model'

export class Cast {
  readonly names: readonly MemberName[]
  private readonly nameOf: readonly number[]
  private readonly owners = new Map<number, Owner>()

  constructor(processes: readonly string[]) {
    this.names = [...new Set(processes)] as unknown as MemberName[]
    this.nameOf = processes.map((name) => this.names.indexOf(name as MemberName))
  }

  /** The index of the process's name. */
  name(process: number): number {
    return this.nameOf[process] as number
  }

  nameIndex(member: MemberName): number {
    return this.names.indexOf(member)
  }

  owner(session: number): Owner {
    let owner = this.owners.get(session)
    if (owner === undefined) {
      const member = this.names[this.name(processOf(session))] as MemberName
      owner = { member, session: sessionText(session) }
      this.owners.set(session, owner)
    }
    return owner
  }
}

export function sessionNumber(process: number, life: number): number {
  return (process + 1) * 100 + life
}

export function processOf(session: number): number {
  return Math.floor(session / 100) - 1
}

export function sessionText(session: number): SessionId {
  return String(session).padStart(16, '0') as SessionId
}

export function sessionOf(text: SessionId): number {
  return Number(text)
}

/** The session of a rebalancer: none of a member's. */
export function rebalancerSession(rebalancer: number): SessionId {
  return String(90_000 + rebalancer).padStart(16, '0') as SessionId
}
