/** Waiting for a time or a signal, whichever comes first. Both resolve; neither ever rejects. */
import type { Clock, Timer } from '../ports/clock.ts'

/** Resolves after the delay, or at once when the signal fires. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: Timer | null = null
    const end = () => {
      timer?.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    if (signal.aborted) {
      resolve()
      return
    }
    signal.addEventListener('abort', end)
    timer = clock.schedule(delayMs, end)
  })
}

/** Resolves when the signal fires, or at once when it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
