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

type Lane = {
  /** Effects under way. */
  running: number
  sealing: Promise<unknown> | null
  /** Called when the last of them has ended. */
  idle: (() => void) | null
}

export function createCommitGate(store: HighWaterStore, sealTimeoutMs: number): CommitGate {
  const lanes = new Map<PartitionId, Lane>()
  const laneOf = (partition: PartitionId): Lane => {
    const lane = lanes.get(partition) ?? { running: 0, sealing: null, idle: null }
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
    await idleWithin(lane, sealTimeoutMs)
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
      lane.running += 1
      try {
        return { ok: true, value: await effect() }
      } finally {
        lane.running -= 1
        if (lane.running === 0) lane.idle?.()
      }
    },
  }
}

/** No effect begins meanwhile: each waits for the seal. */
async function idleWithin(lane: Lane, ms: number): Promise<void> {
  if (lane.running === 0) return
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      lane.idle = resolve
      timer = setTimeout(() => {
        const message = `effects of the partition still run after ${ms} ms: seal again later`
        reject(createTenureError('timed-out', message))
      }, ms)
    })
  } finally {
    lane.idle = null
    clearTimeout(timer)
  }
}
