/** The evidence that lies in files of the run, and the stream as it stands at the end. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectStreams, workSubjects } from '../../src/composition/work.ts'
import { historyLines } from '../../src/dev/history.ts'
import type { AcceptLine } from '../../src/evidence/accept-log.ts'
import type { HistoryLog } from '../../src/evidence/history-log.ts'
import { jsonLines } from '../../src/evidence/json-lines.ts'
import type { Cluster } from './cluster.ts'
import { PREFIX } from './layout.ts'
import type { MachineLine, WaitLine } from './machine-load.ts'
import type { PublishedOrder } from './producer-program.ts'
import { natsServers } from './servers.ts'
import type { StoredOrders } from './stream-losses.ts'
import type { RefusedLine } from './worker-program.ts'

export type GatheredEvidence = {
  readonly published: readonly PublishedOrder[]
  readonly stored: StoredOrders
  readonly refused: readonly RefusedLine[]
  readonly machine: readonly MachineLine[]
}

const READ_TIMEOUT_MS = 60_000

/** Writes what `tenure verify` reads into the run's folder too. */
export async function gatherEvidence(
  cluster: Cluster,
  known: {
    readonly accepts: readonly AcceptLine[]
    readonly history: HistoryLog
    readonly waits: readonly WaitLine[]
  },
): Promise<GatheredEvidence> {
  const refused = cluster.refusedFiles().flatMap((file) => readLines<RefusedLine>(file))
  writeLines(join(cluster.folder, 'accepts.jsonl'), [...known.accepts, ...refused])
  writeLines(join(cluster.folder, 'history.jsonl'), historyLines(known.history))
  writeLines(join(cluster.folder, 'waits.jsonl'), known.waits)
  return {
    published: readLines<PublishedOrder>(cluster.listFile),
    stored: await readStored(cluster),
    refused,
    machine: [...readLines<MachineLine>(cluster.probeFile), ...known.waits],
  }
}

export function readInputs(listFile: string): readonly string[] {
  return readLines<PublishedOrder>(listFile).map(({ input }) => input)
}

async function readStored({ layout }: Cluster): Promise<StoredOrders> {
  const streams = await connectStreams({ nats: { servers: natsServers(layout) } })
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), READ_TIMEOUT_MS)
  const stored = new Map<number, string>()
  try {
    const subjects = workSubjects(PREFIX)
    const { lastSequence } = await streams.streamState(subjects.stream)
    if (lastSequence === 0) return stored
    const from = { stream: subjects.stream, subject: subjects.all, fromSequence: 1 }
    for await (const { messageId, sequence } of streams.read({ ...from, signal: over.signal })) {
      stored.set(sequence, messageId)
      if (sequence >= lastSequence) break
    }
    return stored
  } finally {
    clearTimeout(timer)
    await streams.close()
  }
}

/** A torn last line, as a kill leaves it, is passed over. */
function readLines<T>(file: string): readonly T[] {
  if (!existsSync(file)) return []
  return jsonLines(readFileSync(file, 'utf8')).flatMap(({ value }) =>
    value === null ? [] : [value as T],
  )
}

function writeLines(file: string, lines: readonly object[]): void {
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}
