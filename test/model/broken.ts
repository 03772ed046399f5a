import type { Violations } from '../../src/core/record-invariants.ts'

/** A promise that a reachable state or step of the model breaks. */
export class Broken extends Error {
  readonly promise: string

  constructor(promise: string, detail: string) {
    super(`${promise}: ${detail}`)
    this.promise = promise
  }
}

/** Throws when production's own invariants found something; promises come before inner invariants. */
export function assertUnbroken(violations: Violations, where: string): void {
  const [first] = violations
  if (first === undefined) return
  const { name, detail } = violations.find((one) => one.name.startsWith('S')) ?? first
  throw new Broken(name, `${where}: ${detail}`)
}
