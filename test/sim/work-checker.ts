/**
 * Judges each admission of work, by the test's own view of grants, deadlines and seals:
 *
 *   S2   no two sessions work under one position
 *   S5   nothing is admitted under a token that was handed over, nor runs when the hand-over commits
 *   S6   nothing is admitted, and no guarded effect begun, after the deadline of the token's own session
 *   S7   all resources are sealed by the token before anything is admitted under it
 *   S10  with an honest etcd, nothing is admitted under a token once something was under a later one
 *
 * A fence hides what breaks S5 and S10, so both are looked at here, without the resources.
 */
import type { Token } from '../../src/core/token.ts'
import { comparePositions } from '../../src/core/token.ts'
import { tokenId } from '../../src/evidence/accept-log.ts'
import type { BreachBox } from './breach.ts'
import type { Life } from './life.ts'
import type { SessionLedger } from './session-ledger.ts'

export type Work = {
  readonly life: Life
  readonly token: Token
  readonly id: string
  isLost: boolean
}

export type WorkRules = {
  readonly fenced: boolean
  readonly resources: number
  /** False once etcd dropped a live lease or forgot something. */
  isHonest(): boolean
}

export class WorkChecker {
  /** Pieces of work admitted. */
  admissions = 0
  /** Tokens whose work was told that it is lost: what follows them is no drained hand-over. */
  readonly lostTokens = new Set<string>()
  private readonly ledger: SessionLedger
  private readonly box: BreachBox
  private readonly rules: WorkRules
  private readonly nowMs: () => number
  private readonly granted = new Set<string>()
  private readonly handedOver = new Set<string>()
  private readonly forced = new Set<string>()
  private readonly sealed = new Map<string, Set<string>>()
  private readonly sessionAt = new Map<string, string>()
  private readonly highest = new Map<number, Token>()
  private readonly lastAdmittedMs = new Map<number, number>()
  private readonly inFlight = new Map<string, Set<Work>>()

  constructor(ledger: SessionLedger, box: BreachBox, rules: WorkRules, nowMs: () => number) {
    this.ledger = ledger
    this.box = box
    this.rules = rules
    this.nowMs = nowMs
  }

  // What etcd and the resources did.

  tokenGranted(id: string): void {
    this.granted.add(id)
  }

  /** Its owner committed the end of the token: after a drain, unless the work was told that it is lost. */
  tokenHandedOver(id: string, partition: number): void {
    this.handedOver.add(id)
    for (const work of this.inFlight.get(id) ?? []) {
      if (work.isLost || work.life.isOver) continue
      this.box.report('S5', partition, `handed over ${id} while its work is still running`)
    }
  }

  /** Moved on by force: its owner may hear of that late. */
  tokenForced(id: string): void {
    this.forced.add(id)
  }

  tokenSealed(token: Token, resource: string): void {
    const id = tokenId(token)
    const known = this.sealed.get(id)
    if (known === undefined) this.sealed.set(id, new Set([resource]))
    else known.add(resource)
  }

  // What workers do.

  admitted(life: Life, token: Token): Work {
    const id = tokenId(token)
    this.admissions += 1
    this.mayWork(life, token, id, 'admitted')
    const { partition } = token
    if (this.handedOver.has(id)) this.report('S5', token, `admitted after ${id} was handed over`)
    if (this.rules.fenced && (this.sealed.get(id)?.size ?? 0) < this.rules.resources) {
      this.report('S7', token, `admitted under ${id} before all resources were sealed`)
    }
    const position = `${partition} ${token.incarnation}.${token.generation}`
    const session = this.sessionAt.get(position)
    this.sessionAt.set(position, token.session)
    if (session !== undefined && session !== token.session && this.countsAfterRestore()) {
      this.report('S2', token, `sessions ${session} and ${token.session} work under one position`)
    }
    this.inOrder(token, id)
    this.lastAdmittedMs.set(partition, this.nowMs())
    const work: Work = { life, token, id, isLost: false }
    const known = this.inFlight.get(id)
    if (known === undefined) this.inFlight.set(id, new Set([work]))
    else known.add(work)
    return work
  }

  /** `check` let a guarded effect begin. */
  effectBegun(life: Life, token: Token): void {
    this.mayWork(life, token, tokenId(token), 'an effect begun')
  }

  lost(work: Work): void {
    work.isLost = true
    this.lostTokens.add(work.id)
  }

  ended(work: Work): void {
    if (work.life.isOver) return
    const known = this.inFlight.get(work.id)
    known?.delete(work)
    if (known?.size === 0) this.inFlight.delete(work.id)
  }

  /** Work begun so far under exactly this token or a later one of the partition. */
  isWorking(partition: number, position: { incarnation: number; generation: number }): boolean {
    const highest = this.highest.get(partition)
    return highest !== undefined && comparePositions(highest, position) >= 0
  }

  highestWorked(partition: number): Token | null {
    return this.highest.get(partition) ?? null
  }

  lastAdmissionMs(partition: number): number {
    return this.lastAdmittedMs.get(partition) ?? Number.NEGATIVE_INFINITY
  }

  private mayWork(life: Life, token: Token, id: string, what: string): void {
    const nowMs = this.nowMs()
    if (life.isOver) this.report('crash', token, `${what} in a process that was killed`)
    if (!this.granted.has(id)) this.report('S6', token, `${what} under ${id}, never granted`)
    if (this.ledger.processOf(token.session) !== life.name) {
      this.report('S6', token, `${what} under a session of another process`)
    }
    const deadlineMs = this.ledger.deadlineOf(token.session)
    if (nowMs >= deadlineMs) {
      const late = Number.isFinite(deadlineMs) ? `${nowMs - deadlineMs} ms after its deadline` : ''
      this.report('S6', token, `${what} under ${id} ${late || 'after its session was closed'}`)
    }
  }

  /** Nothing below the highest position that has worked, where nothing excuses it. */
  private inOrder(token: Token, id: string): void {
    const { partition } = token
    const highest = this.highest.get(partition)
    if (highest === undefined || comparePositions(token, highest) > 0) {
      this.highest.set(partition, token)
      return
    }
    if (comparePositions(token, highest) === 0) return
    if (!this.rules.isHonest() || this.forced.has(id)) return
    this.report('S10', token, `admitted under ${id} after ${tokenId(highest)} had begun to work`)
  }

  /** An unfenced group is promised nothing once etcd was restored. */
  private countsAfterRestore(): boolean {
    return this.rules.fenced || this.rules.isHonest()
  }

  private report(promise: 'S2' | 'S5' | 'S6' | 'S7' | 'S10' | 'crash', token: Token, text: string) {
    this.box.report(promise, token.partition, text)
  }
}
