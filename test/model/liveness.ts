/**
 * From which states healing leads nowhere: those that no good state is reached from by moves that heal. Found
 * backwards from the good ones, over the healing moves sorted by where they lead.
 */
import type { Growing } from './growing.ts'

export function findStuck(
  states: number,
  good: Growing,
  healing: Growing,
): { readonly count: number; readonly first: number } {
  const moves = healing.length / 2
  const begins = new Int32Array(states + 1)
  for (let at = 0; at < moves; at += 1) {
    const to = healing.at(at * 2 + 1)
    begins[to + 1] = (begins[to + 1] as number) + 1
  }
  for (let state = 0; state < states; state += 1) {
    begins[state + 1] = (begins[state + 1] as number) + (begins[state] as number)
  }
  const places = begins.slice(0, states)
  const sources = new Int32Array(moves)
  for (let at = 0; at < moves; at += 1) {
    const to = healing.at(at * 2 + 1)
    const place = places[to] as number
    sources[place] = healing.at(at * 2)
    places[to] = place + 1
  }
  const reached = new Uint8Array(states)
  const queue = new Int32Array(states)
  let queued = 0
  for (let at = 0; at < good.length; at += 1) {
    reached[good.at(at)] = 1
    queue[queued++] = good.at(at)
  }
  for (let head = 0; head < queued; head += 1) {
    const to = queue[head] as number
    for (let at = begins[to] as number; at < (begins[to + 1] as number); at += 1) {
      const from = sources[at] as number
      if (reached[from] !== 0) continue
      reached[from] = 1
      queue[queued++] = from
    }
  }
  return { count: states - queued, first: reached.indexOf(0) }
}
