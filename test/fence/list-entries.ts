/** An effect of the conformance suite as one entry of a list. */
import type { Token } from '../../src/core/token.ts'
import type { AppliedEffect } from '../../src/testing/index.ts'

export function entryOf(token: Token, number: number): string {
  const { incarnation, generation, session } = token
  return JSON.stringify({ incarnation, generation, session, number })
}

export function readEntry(entry: string): AppliedEffect {
  return JSON.parse(entry) as AppliedEffect
}
