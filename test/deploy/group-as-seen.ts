/** What a `serve` process says of a group, and what workers' logs say happened. */
import type { Container, LogLine } from './container.ts'

export type GroupAsSeen = {
  readonly partitions: number
  readonly owned: number
  readonly notServing: number
  readonly moving: number
  readonly members: number
  readonly rebalancer: string | null
}

export async function readGroup(url: string): Promise<GroupAsSeen> {
  return (await readJson(`${url}/v1/groups/orders`)) as GroupAsSeen
}

/** Partitions owned, by member. */
export async function readOwned(url: string): Promise<ReadonlyMap<string, number>> {
  const { members } = (await readJson(`${url}/v1/groups/orders/members`)) as {
    members: readonly { readonly member: string; readonly owned: number }[]
  }
  return new Map(members.map(({ member, owned }) => [member, owned]))
}

/** True when every partition is owned and served, none is on its way, and each of so many members has some. */
export async function isSettled(url: string, members: number): Promise<boolean> {
  const group = await readGroup(url)
  if (group.members !== members || group.owned !== group.partitions) return false
  if (group.notServing > 0 || group.moving > 0) return false
  return [...(await readOwned(url)).values()].every((owned) => owned > 0)
}

export function eventsOf(container: Container, event: string): readonly LogLine[] {
  return container.log().filter((line) => line['event'] === event)
}

/** Lines that the example's own handlers wrote. */
export function ordersLines(container: Container, what: 'released' | 'lost'): readonly LogLine[] {
  return container.log().filter((line) => line['orders'] === what)
}

async function readJson(url: string): Promise<unknown> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(5000) })
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${await reply.text()}`)
  return reply.json()
}
