/**
 * A worker's options with the cursor's type taken from `acquire`, in whatever order the other handlers
 * stand. (In a plain object, TypeScript infers it only where `acquire` stands before them.)
 */
import type { Partition, WorkerOptions } from './worker-options.ts'

/**
 * @example
 * await startWorker(
 *   withCursor((p) => Cursor.load(p.id), {
 *     group: 'orders',
 *     lost: (p, cursor) => cursor.discard(),
 *     run: (p, cursor) => serve(p, cursor),
 *   }),
 * )
 */
export function withCursor<Cursor, Rest extends object = object>(
  acquire: (partition: Partition) => Cursor | Promise<Cursor>,
  options: Omit<WorkerOptions<Cursor>, 'acquire'> & Rest,
): WorkerOptions<Cursor> & Rest {
  return { ...options, acquire }
}
