/** S11: every acknowledged input has an accepted effect, and exactly one. */
import type { EffectLine } from './accept-log.ts'
import { describePosition, type Violation } from './findings.ts'

export function verifyInputs(
  inputs: readonly string[],
  effects: readonly EffectLine[],
): readonly Violation[] {
  const applied = new Map<string, EffectLine[]>()
  for (const effect of effects) {
    if (effect.outcome !== 'applied' || effect.input === null) continue
    const known = applied.get(effect.input)
    if (known === undefined) applied.set(effect.input, [effect])
    else known.push(effect)
  }
  const violations: Violation[] = []
  for (const input of new Set(inputs)) {
    if (applied.has(input)) continue
    violations.push({
      ...{ promise: 'S11', kind: 'input-lost', partition: null, generations: [], atMs: null },
      detail: `input ${input} was acknowledged and has no effect`,
    })
  }
  for (const [input, times] of applied) {
    const [first, second] = times
    if (first === undefined || second === undefined) continue
    violations.push({
      ...{ promise: 'S11', kind: 'input-doubled', partition: first.token.partition },
      generations: times.map(({ token }) => describePosition(token)),
      atMs: second.endMs,
      detail: `input ${input} was applied ${times.length} times`,
    })
  }
  return violations
}
