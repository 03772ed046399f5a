/** What an operator asks of etcd's members, over their JSON gateway. */
import { ETCD_PORT } from './layout.ts'
import type { Node } from './nodes.ts'

const TIMEOUT_MS = 2000
const COMPACTED = 'required revision has been compacted'

/** Nothing happens where it was compacted that far before. */
export async function compact(node: Node, revision: number): Promise<void> {
  try {
    await call(node, 'kv/compaction', { revision, physical: true })
  } catch (error: unknown) {
    if (!(error instanceof Error) || !error.message.includes(COMPACTED)) throw error
  }
}

export function defragment(node: Node): Promise<unknown> {
  return call(node, 'maintenance/defragment', {})
}

/** Null when none of them answers. */
export async function findLeader(nodes: readonly Node[]): Promise<Node | null> {
  for (const node of nodes) {
    const status = await call(node, 'maintenance/status', {}).catch(() => null)
    const { header, leader } = (status ?? {}) as {
      readonly header?: { readonly member_id: string }
      readonly leader?: string
    }
    if (header !== undefined && header.member_id === leader) return node
  }
  return null
}

/** Whether each member answers and all name the same leader. */
export async function isWhole(nodes: readonly Node[]): Promise<boolean> {
  const asked = nodes.map((node) => call(node, 'maintenance/status', {}).catch(() => null))
  const leaders = new Set((await Promise.all(asked)).map(leaderOf))
  return leaders.size === 1 && !leaders.has('0')
}

function leaderOf(status: unknown): string {
  return (status as { readonly leader?: string } | null)?.leader ?? '0'
}

/** The member's raft term, which rises with each election. */
export async function readTerm(node: Node): Promise<number> {
  const status = (await call(node, 'maintenance/status', {})) as { readonly raftTerm?: string }
  return Number(status.raftTerm ?? 0)
}

async function call(node: Node, path: string, body: object): Promise<unknown> {
  const reply = await fetch(`http://${node.place.address}:${ETCD_PORT}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`)
  return JSON.parse(text)
}
