/**
 * Compile-time tests of the worker's types: checked by `tsc`, never run. Each expected error is one that
 * an author should get.
 */
import {
  type Observer,
  type Partition,
  startWorker,
  type Token,
  type Worker,
  type WorkOutcome,
  withCursor,
} from '../../src/index.ts'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function expectType<_T extends true>(): void {}

class Cursor {
  static async load(_id: number): Promise<Cursor> {
    return new Cursor()
  }
  flush(): void {}
  discard(): void {}
}

// The whole of what an author must write.
export const least = startWorker({ group: 'orders' })
expectType<Equal<typeof least, Promise<Worker>>>()

// The cursor is what acquire returns, awaited, where acquire stands first.
export const inferred = startWorker({
  group: 'orders',
  acquire: (p) => Cursor.load(p.id),
  run: async (p, cursor) => {
    expectType<Equal<typeof p, Partition>>()
    expectType<Equal<typeof cursor, Cursor>>()
    expectType<Equal<typeof p.token, Token>>()
    const value = await p.work(() => 42)
    expectType<Equal<typeof value, number>>()
  },
  release: (_, cursor) => cursor.flush(),
  lost: (_, cursor, cause) => {
    if (cause === 'deadline') cursor.discard()
    // @ts-expect-error: no such cause
    if (cause === 'tired') cursor.discard()
  },
})

// In any order with withCursor.
export const anyOrder = startWorker(
  withCursor((p) => Cursor.load(p.id), {
    lost: (_, cursor) => cursor.discard(),
    run: (_, cursor) => expectType<Equal<typeof cursor, Cursor>>(),
    group: 'orders',
    etcd: { endpoints: ['127.0.0.1:2379'] },
  }),
)

// @ts-expect-error: the group is missing
export const groupless = startWorker({ run: () => {} })

export const wrong = startWorker({
  group: 'orders',
  // @ts-expect-error: partitions are a number
  settings: { partitions: '64' },
})

export async function keyed(worker: Worker): Promise<string> {
  const outcome = await worker.work('customer-17', (p) => p.id.toString())
  expectType<Equal<typeof outcome, WorkOutcome<string>>>()
  // @ts-expect-error: the value is there only when it worked
  void outcome.value
  return outcome.ok ? outcome.value : (outcome.owner?.address ?? 'nobody')
}

export function readonlyHandle(p: Partition, observer: Observer): void {
  // @ts-expect-error: a token is not to be changed
  p.token.generation = 7
  const owner = observer.owner('customer-17')
  // @ts-expect-error: there may be no owner
  void owner.member
}
