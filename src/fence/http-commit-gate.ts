/**
 * One partition's fence in a resource's process: effects share it, a seal has it alone.
 *
 *   effect   waits while a seal waits or runs; checks; runs; only then can a seal begin
 *   seal     waits for the effects that run, then raises the mark, durably
 *
 * So no effect commits under a token that a seal has overtaken since its check (S3), and effects of one
 * partition run in parallel. An effect that never ends would hold up the seal for ever: after its timeout
 * the seal gives up and nothing is raised.
 */
import { decideEffect, decideSeal } from '../core/fence.ts'
import type { PartitionId } from '../core/ids.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { EffectOutcome, SealOutcome } from './fence.ts'
import type { HighWaterStore } from './http-high-water.ts'

export interface CommitGate {
  seal(token: Token): Promise<SealOutcome>
  commit<T>(token: Token, effect: () => T | Promise<T>): Promise<EffectOutcome<T>>
  /** The check alone, for refusing early; it promises nothing about a moment later. */
  look(token: Token): EffectOutcome<null>
}

type Lane = { running: Set<Promise<unknown>>; sealing: Promise<unknown> | null }

export function createCommitGate(store: HighWaterStore, sealTimeoutMs: number): CommitGate {
  const lanes = new Map<PartitionId, Lane>()
  const laneOf = (partition: PartitionId): Lane => {
    const lane = lanes.get(partition) ?? { running: new Set(), sealing: null }
    lanes.set(partition, lane)
    return lane
  }
  const look = (token: Token): EffectOutcome<null> => {
    const highest = store.highest(token.partition)
    const decision = decideEffect(highest, token)
    return decision === 'accept'
      ? { ok: true, value: null }
      : { ok: false, reason: decision, highest }
  }
  const raise = async (lane: Lane, token: Token): Promise<SealOutcome> => {
    await settledWithin(lane.running, sealTimeoutMs)
    const highest = store.highest(token.partition)
    const decision = decideSeal(highest, token)
    if (decision === 'refuse' && highest !== null) return { ok: false, reason: 'stale', highest }
    if (decision === 'raise') await store.raise(token)
    return { ok: true }
  }

  return {
    look,
    async seal(token) {
      const lane = laneOf(token.partition)
      while (lane.sealing !== null) await lane.sealing
      const sealing = raise(lane, token)
      lane.sealing = sealing.catch(() => {})
      try {
        return await sealing
      } finally {
        lane.sealing = null
      }
    },
    async commit(token, effect) {
      const lane = laneOf(token.partition)
      while (lane.sealing !== null) await lane.sealing
      const outcome = look(token)
      if (!outcome.ok) return outcome
      // Begun in the same turn as the check, so that an effect without a pause is one step with it.
      const running = (async () => effect())()
      const settled = running.then(
        () => {},
        () => {},
      )
      lane.running.add(settled)
      try {
        return { ok: true, value: await running }
      } finally {
        lane.running.delete(settled)
      }
    },
  }
}

async function settledWithin(running: ReadonlySet<Promise<unknown>>, ms: number): Promise<void> {
  if (running.size === 0) return
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = `effects of the partition still run after ${ms} ms: seal again later`
      reject(createTenureError('timed-out', message))
    }, ms)
  })
  try {
    await Promise.race([Promise.all(running), late])
  } finally {
    clearTimeout(timer)
  }
}
