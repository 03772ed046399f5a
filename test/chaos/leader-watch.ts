/** When etcd had another leader: by its term, asked of every member now and then. */
import { machineMs } from '../../src/dev/machine-time.ts'
import { readTerm } from './etcd-calls.ts'
import type { Node } from './nodes.ts'

export type LeaderWatch = { changesMs(): readonly number[]; close(): void }

const EVERY_MS = 1000

export function watchLeader(nodes: readonly Node[]): LeaderWatch {
  const changes: number[] = []
  let highest: number | null = null
  let asking = false
  const look = async () => {
    const terms = await Promise.all(nodes.map((node) => readTerm(node).catch(() => 0)))
    const term = Math.max(...terms)
    if (highest !== null && term > highest) changes.push(machineMs())
    highest = Math.max(term, highest ?? term)
  }
  const timer = setInterval(() => {
    if (asking) return
    asking = true
    void look().finally(() => {
      asking = false
    })
  }, EVERY_MS)
  return { changesMs: () => changes, close: () => clearInterval(timer) }
}
