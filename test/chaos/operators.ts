/** Operators at work over HTTP, all the time: what they ask is drawn from the seed. */
import { setTimeout as delay } from 'node:timers/promises'
import type { SeededRandom } from '../../src/testing/seeded-random.ts'
import { HTTP_TOKEN, SETTINGS } from './layout.ts'

export type OperatorCounts = {
  /** By what was asked and how it was answered: `move 202`, `freeze failed`. */
  readonly [answer: string]: number
}

export type Operators = {
  evict(member: string): Promise<void>
  /** Asks for this and that until `pause`. */
  resume(): void
  /** Resolves once nothing is under way, and no mark of theirs stands. */
  pause(): Promise<void>
  counts(): OperatorCounts
}

type Rebalance = {
  readonly id: string
  readonly kind: { readonly type: string }
  readonly state: string
  readonly requestedAtMs: number
}

type Action = 'move' | 'drain' | 'rebalance' | 'freeze' | 'cordon' | 'cancel'

const DECK: readonly Action[] = [
  ...['move', 'move', 'move', 'move', 'move', 'move', 'move', 'move'],
  ...['drain', 'rebalance', 'rebalance', 'freeze', 'cordon', 'cancel', 'cancel'],
] as readonly Action[]
const EVERY_MS = { least: 400, range: 1200 }
const MARK_MS = { least: 500, range: 2500 }
const TIMEOUT_MS = 3000
const CLEAR_TRIES = 20
const CLEAR_RETRY_MS = 500

export function createOperators(
  groupUrls: readonly string[],
  members: readonly string[],
  random: SeededRandom,
): Operators {
  const counts: Record<string, number> = {}
  let working: Promise<void> = Promise.resolve()
  let running = new AbortController()
  running.abort()

  const pick = <T>(values: readonly T[]): T | undefined => values[random.integer(values.length)]
  const ask = async (name: string, method: string, path: string, body: object | null = {}) => {
    const reply = await fetch(`${pick(groupUrls)}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${HTTP_TOKEN}`,
        ...(body === null ? {} : { 'content-type': 'application/json' }),
      },
      body: body === null ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch(() => null)
    const text = await reply?.text().catch(() => '')
    const answer = `${name} ${reply === null ? 'failed' : reply.status}`
    counts[answer] = (counts[answer] ?? 0) + 1
    return reply?.ok === true ? text : null
  }
  /** A mark of an operator that stays would change what is proved afterwards. */
  const clear = async (name: string, path: string) => {
    for (let tries = 0; tries < CLEAR_TRIES; tries += 1) {
      if ((await ask(`un${name}`, 'DELETE', path, null)) !== null) return
      await delay(CLEAR_RETRY_MS)
    }
  }
  const markFor = async (name: string, path: string, signal: AbortSignal) => {
    await ask(name, 'PUT', path)
    await pause(MARK_MS.least + random.integer(MARK_MS.range), signal)
    await clear(name, path)
  }
  const listRebalances = async (): Promise<readonly Rebalance[] | null> => {
    const text = await ask('list', 'GET', '/rebalances', null)
    return text === null || text === undefined
      ? null
      : (JSON.parse(text) as { rebalances: Rebalance[] }).rebalances
  }
  /** A drain that is still asked for cordons its member whenever a rebalancer comes to it. */
  const undoDrains = async () => {
    for (let tries = 0; tries < CLEAR_TRIES; tries += 1) {
      const rebalances = await listRebalances()
      const open = rebalances?.filter(({ kind, state }) => kind.type === 'drain' && isOpen(state))
      for (const { id } of open ?? []) await ask('cancel', 'POST', `/rebalances/${id}/cancel`)
      if (open?.length === 0) break
      await delay(CLEAR_RETRY_MS)
    }
    for (const member of members) await clear('cordon', `/members/${member}/cordon`)
  }
  const cancelNewest = async () => {
    const rebalances = (await listRebalances()) ?? []
    const [newest] = [...rebalances].sort((a, b) => b.requestedAtMs - a.requestedAtMs)
    if (newest !== undefined) await ask('cancel', 'POST', `/rebalances/${newest.id}/cancel`)
  }
  const act = async (action: Action, signal: AbortSignal): Promise<void> => {
    const member = pick(members) ?? ''
    switch (action) {
      case 'move': {
        const partition = random.integer(SETTINGS.partitions)
        await ask(action, 'POST', `/partitions/${partition}/move`, { to: member })
        return
      }
      case 'drain':
        // A drained member stays cordoned until somebody undoes it.
        await ask(action, 'POST', `/members/${member}/drain`)
        await pause(MARK_MS.least + random.integer(MARK_MS.range), signal)
        return clear('cordon', `/members/${member}/cordon`)
      case 'rebalance':
        await ask(action, 'POST', '/rebalances')
        return
      case 'freeze':
        return markFor(action, '/freeze', signal)
      case 'cordon':
        return markFor(action, `/members/${member}/cordon`, signal)
      case 'cancel':
        return cancelNewest()
      default:
        action satisfies never
    }
  }
  const work = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await act(pick(DECK) ?? 'move', signal)
      await pause(EVERY_MS.least + random.integer(EVERY_MS.range), signal)
    }
  }
  return {
    evict: async (member) => void (await ask('evict', 'POST', `/members/${member}/evict`)),
    resume() {
      running = new AbortController()
      working = work(running.signal)
    },
    async pause() {
      running.abort()
      await working
      await undoDrains()
    },
    counts: () => counts,
  }
}

function isOpen(state: string): boolean {
  return state === 'requested' || state === 'running' || state === 'cancelling'
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}
