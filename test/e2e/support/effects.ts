/** The judgement over what happened at the fenced resource, against etcd's history of grants. */
import assert from 'node:assert/strict'
import type { LedgerToken } from '../../../src/dev/ledger-book.ts'
import type { Effect, FencedResource } from './fenced-resource.ts'
import type { Grant } from './group-history.ts'

/**
 * Each partition's applied effects are 1, 2, 3, … without a gap or a repetition (S3, S11); each was
 * written under a token that etcd granted to that very session (S2), and after that token was sealed
 * (S7); no effect, refused ones included, ends after its token was handed over (S5, S10).
 */
export function assertEffectsSound(resource: FencedResource, grants: readonly Grant[]): void {
  const granted = new Map(grants.map((grant) => [positionOf(grant), grant]))
  const sealedAt = new Map<string, number>()
  for (const { token, sealed, atMs } of resource.seals) {
    if (sealed && !sealedAt.has(positionOf(token))) sealedAt.set(positionOf(token), atMs)
  }
  const last = new Map<number, { readonly sequence: number; readonly token: LedgerToken }>()
  const applied = resource.effects.filter(({ outcome }) => outcome === 'applied')
  for (const effect of applied) {
    const { token, sequence } = effect
    const what = `partition ${token.partition}, effect ${sequence}`
    const before = last.get(token.partition)
    assert.equal(sequence, (before?.sequence ?? 0) + 1, `${what}: out of sequence`)
    last.set(token.partition, effect)
    assert.equal(granted.get(positionOf(token))?.session, token.session, `${what}: no such grant`)
    const sealedAtMs = sealedAt.get(positionOf(token)) ?? Number.POSITIVE_INFINITY
    assert.ok(sealedAtMs <= effect.beginMs, `${what}: before its token was sealed`)
  }
  assertDrained(resource.effects, grants)
}

/** History is stamped when it arrives here, so a grant is never stamped before it was committed. */
function assertDrained(effects: readonly Effect[], grants: readonly Grant[]): void {
  const endOf = new Map<string, number>()
  for (const { token, endMs } of effects) {
    const position = positionOf(token)
    endOf.set(position, Math.max(endOf.get(position) ?? 0, endMs))
  }
  for (const grant of grants) {
    if (grant.how !== 'hand-over') continue
    const before = { ...grant, generation: grant.generation - 1 }
    const lateMs = (endOf.get(positionOf(before)) ?? 0) - grant.atMs
    const what = `partition ${grant.partition}, handed over at generation ${grant.generation}`
    assert.ok(lateMs <= 0, `${what}: an effect ended ${lateMs} ms later`)
  }
}

/** Effects admitted in the session after the moment, but for slack that measuring needs. */
export function admittedAfter(
  resource: FencedResource,
  session: string,
  atMs: number,
): readonly Effect[] {
  return resource.effects.filter(
    ({ token, admittedMs }) => token.session === session && admittedMs > atMs,
  )
}

function positionOf(token: {
  readonly partition: number
  readonly incarnation: number
  readonly generation: number
}): string {
  return `${token.partition} ${token.incarnation}.${token.generation}`
}
