/**
 * An owner as the conformance suite sees it: something with a client of its own that seals and writes, and
 * that can be stopped in the middle of a write.
 *
 *   write -> (stands still at a step) -> resume -> outcome
 *
 * In this file the owner lives in this process and stands still by awaiting. `fence-conformance-process.ts`
 * has the same as a process of its own, stopped by SIGSTOP.
 */
import type { Sealed } from '../core/fence.ts'
import type { Token } from '../core/token.ts'
import type { Fence, SealOutcome } from '../fence/fence.ts'

/**
 * Where a write stands still. `before`: admitted by its own process, nothing sent yet. `during`: at any
 * moment of the call. `checked`, `written`: inside the effect, before and after it writes; only resources
 * whose effect is a function of a transaction get there.
 */
export type StopAt = 'before' | 'during' | 'checked' | 'written'

/** The steps that an effect announces, for resources whose effect is code of the worker. */
export type EffectStep = (at: 'checked' | 'written') => Promise<void>

export type WriteOutcome =
  | { readonly type: 'accepted' }
  | {
      readonly type: 'refused'
      readonly reason: 'stale' | 'unsealed'
      readonly highest: Sealed | null
    }
  | { readonly type: 'failed'; readonly message: string }

export type WriteAttempt = {
  /** True once it stands still; false when it ended without reaching the step. */
  readonly stopped: Promise<boolean>
  resume(): void
  /** Never rejects. */
  readonly outcome: Promise<WriteOutcome>
}

export type WriteRequest = {
  readonly token: Token
  /** What the effect appends to the partition's list; unique in a run. */
  readonly number: number
  readonly stopAt: StopAt | null
  /** For `during`: how long after the call began, in milliseconds. */
  readonly stopAfterMs: number
}

export interface FenceOwner {
  seal(token: Token): Promise<SealOutcome>
  write(request: WriteRequest): WriteAttempt
  close(): Promise<void>
}

export type FenceUnderTest<Effect, Result> = {
  readonly fence: Fence<Effect, Result>
  /** An effect that appends the number and the token to the partition's list, durably. */
  effectOf(token: Token, number: number, step: EffectStep): Effect
  close?(): Promise<void>
}

/** An owner in this process. Give each its own client: sharing one would hide what two processes do. */
export function ownerInProcess<Effect, Result>(under: FenceUnderTest<Effect, Result>): FenceOwner {
  return {
    seal: (token) => under.fence.seal(token),
    write(request) {
      const stop = createStop()
      const stepOf = (at: StopAt) => (request.stopAt === at ? stop.stand() : Promise.resolve())
      const run = async (): Promise<WriteOutcome> => {
        await stepOf('before')
        const writing = runGuarded(under, request, stepOf)
        // Here the call goes on while its owner is thought of as stopped: its answer is late, no more.
        if (request.stopAt === 'during') await stop.stand()
        return writing
      }
      const outcome = run()
      void outcome.then(() => stop.pass())
      return { stopped: stop.stopped, resume: stop.resume, outcome }
    },
    close: async () => under.close?.(),
  }
}

/** Runs one guarded effect; never rejects. */
export async function runGuarded<Effect, Result>(
  under: FenceUnderTest<Effect, Result>,
  request: Pick<WriteRequest, 'token' | 'number'>,
  step: EffectStep,
): Promise<WriteOutcome> {
  try {
    const effect = under.effectOf(request.token, request.number, step)
    const outcome = await under.fence.guard(request.token, effect)
    return outcome.ok
      ? { type: 'accepted' }
      : { type: 'refused', reason: outcome.reason, highest: outcome.highest }
  } catch (error) {
    return { type: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}

function createStop() {
  let settle: (stopped: boolean) => void = () => {}
  let release: () => void = () => {}
  const stopped = new Promise<boolean>((resolve) => {
    settle = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return {
    stopped,
    stand(): Promise<void> {
      settle(true)
      return released
    },
    pass: () => settle(false),
    resume: () => release(),
  }
}
