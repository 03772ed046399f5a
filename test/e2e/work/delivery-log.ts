/**
 * What a worker's consumer was handed by the stream, message by message, in a file of its own that
 * survives a kill: the evidence of what an old owner held when its partition went to the next.
 */
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Streams } from '../../../src/composition/work.ts'
import { machineMs } from '../../../src/dev/machine-time.ts'

export type DeliveryLine = {
  readonly partition: number
  readonly sequence: number
  /** Of the grant under which it was read. */
  readonly generation: number
  readonly atMs: number
}

const SUFFIX = '.deliveries.jsonl'

/** The streams, with a line for each message that a reader hands out. */
export function logDeliveries<S extends Streams>(
  streams: S,
  options: {
    readonly logFolder: string
    readonly member: string
    readonly generationOf: (partition: number) => number
  },
): S {
  const file = openSync(join(options.logFolder, `${options.member}${SUFFIX}`), 'a')
  return {
    ...streams,
    async *read(wanted) {
      const partition = Number(wanted.subject.split('.').at(-2))
      const generation = options.generationOf(partition)
      for await (const message of streams.read(wanted)) {
        const { sequence } = message
        const line: DeliveryLine = { partition, sequence, generation, atMs: machineMs() }
        writeSync(file, `${JSON.stringify(line)}\n`)
        yield message
      }
    },
  }
}

/** All workers' lines, oldest first. A torn last line, as a kill leaves it, is passed over. */
export function readDeliveries(logFolder: string): readonly DeliveryLine[] {
  return readdirSync(logFolder)
    .filter((name) => name.endsWith(SUFFIX))
    .flatMap((name) => readFileSync(join(logFolder, name), 'utf8').split('\n'))
    .flatMap((text): DeliveryLine[] => {
      try {
        return text === '' ? [] : [JSON.parse(text) as DeliveryLine]
      } catch {
        return []
      }
    })
    .sort((a, b) => a.atMs - b.atMs)
}
