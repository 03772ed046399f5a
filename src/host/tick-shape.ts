/**
 * Keeps `process.nextTick` fast in a process that runs for long.
 *
 * Node makes an object for each tick from a literal with computed names. V8 learns that object's shape,
 * but holds it weakly: a full collection while no tick waits forgets it, the next tick has a shape that is
 * new to the code, and from then on each computed name is defined by a call into V8's runtime. A tick then
 * costs five times as much, for good (60 ns become 400 on Node 20, 22 and 24), and streams, HTTP and HTTP/2
 * take several for each message: a tenth of a look-up's time. One tick's object kept alive keeps the shape.
 *
 * What the caller's async context holds stays alive with it. Not promised: that a Node whose ticks are
 * made otherwise is any faster; it loses one small object.
 */
import { executionAsyncResource } from 'node:async_hooks'

let kept: object | null = null

/** Once per process; resolves when a tick's object is held. */
export async function keepTickShape(): Promise<object> {
  if (kept !== null) return kept
  kept = await new Promise<object>((resolve) => {
    // Inside a tick, this is the tick's own object.
    process.nextTick(() => resolve(executionAsyncResource()))
  })
  return kept
}
