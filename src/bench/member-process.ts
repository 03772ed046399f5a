/**
 * Tenure's members in one process of the benchmark, under load: every partition has an item in flight
 * at all times, and each grant notes when its work was first and last admitted and when the last item
 * ended. Times are the machine's (`machineMs`), so that two processes' notes compare.
 */
import { startWorker } from '../composition/start-worker.ts'
import type { GroupSettings } from '../core/group-config.ts'
import { machineMs } from '../dev/machine-time.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import type { TelemetryEvent } from '../ports/telemetry.ts'
import type { Partition, Worker } from '../runtime/worker-options.ts'
import { BUCKET_MS, itemTime, type MemberNotes, type OpenNote, openNote } from './grant-notes.ts'
import type { Held } from './process-messages.ts'

export type JoinArgument = {
  readonly group: string
  readonly keyPrefix: string
  readonly members: readonly string[]
  readonly settings: GroupSettings
  readonly etcd: EtcdStoreOptions
  readonly nats: NatsOptions
  /** How long an item of work takes; null: no load. */
  readonly itemMs: number | null
}

const TELL_MS = 5

export class MemberProcess {
  private readonly tell: (held: Held) => void
  private readonly workers = new Map<string, Worker>()
  private readonly serving = new Set<number>()
  private readonly current = new Map<number, OpenNote>()
  private grants: OpenNote[] = []
  private changedAtMs = 0
  private telling: NodeJS.Timeout | null = null
  private sessionOpenedMs = 0
  private firstGrantMs = 0
  private firstDrainingMs = 0
  private lastServingMs = 0
  private items = 0
  private buckets = new Map<number, number>()
  private lost = 0
  private loading = true
  /** Partitions that wait for the load to go on. */
  private readonly waiting = new Set<() => void>()

  constructor(tell: (held: Held) => void) {
    this.tell = tell
  }

  /** Resolves when every member's session lives. */
  async join(argument: JoinArgument): Promise<number> {
    const { group, keyPrefix, settings, etcd, nats, itemMs } = argument
    this.loading = true
    const atMs = machineMs()
    const started = argument.members.map(async (member) => {
      const worker = await startWorker({
        ...{ group, member, keyPrefix, settings, etcd, nats },
        telemetry: { record: (event) => this.heard(event) },
        signals: false,
        ...(itemMs === null ? {} : { run: (p: Partition) => this.serve(p, itemMs) }),
      })
      this.workers.set(member, worker)
      worker.done.catch((error: unknown) => console.error(member, error))
      await worker.ready
    })
    await Promise.all(started)
    return atMs
  }

  /** Between measurements the partitions rest. */
  load({ on }: { readonly on: boolean }): void {
    this.loading = on
    if (on) for (const end of [...this.waiting]) end()
  }

  /** Notes since the last reset; grants that go on are included. */
  notes(reset: boolean): MemberNotes {
    const { sessionOpenedMs, firstGrantMs, firstDrainingMs, lastServingMs, items, lost } = this
    const { buckets } = this
    const grants = [...this.grants, ...this.current.values()].map((note) => ({ ...note }))
    if (reset) this.reset()
    return {
      ...{ sessionOpenedMs, firstGrantMs, firstDrainingMs, lastServingMs, items, lost, grants },
      buckets,
    }
  }

  async leave(members: readonly string[] | null, force: boolean): Promise<void> {
    const leaving = members ?? [...this.workers.keys()]
    const stopped = leaving.map(async (member) => {
      const worker = this.workers.get(member)
      this.workers.delete(member)
      await worker?.stop({ force })
    })
    await Promise.all(stopped)
    if (this.workers.size > 0) return
    this.serving.clear()
    this.current.clear()
    this.reset()
    this.say()
  }

  private reset(): void {
    this.grants = []
    this.firstGrantMs = 0
    this.firstDrainingMs = 0
    this.lastServingMs = 0
    this.items = 0
    this.buckets = new Map()
    this.lost = 0
  }

  private async serve(p: Partition, itemMs: number): Promise<void> {
    const note = openNote(p.id, p.token.generation)
    this.current.set(p.id, note)
    const item = () => {
      const nowMs = machineMs()
      const isFirst = note.firstAdmittedMs === 0
      if (isFirst) note.firstAdmittedMs = nowMs
      note.lastAdmittedMs = nowMs
      this.items += 1
      const bucket = Math.floor(nowMs / BUCKET_MS)
      this.buckets.set(bucket, (this.buckets.get(bucket) ?? 0) + 1)
      return new Promise<void>((resolve) => {
        setTimeout(resolve, itemTime(p.id, itemMs, isFirst))
      })
    }
    try {
      while (!p.draining.aborted) {
        if (this.loading) {
          await p.work(item)
          note.lastEndedMs = machineMs()
        } else await this.resumed(p.draining)
      }
    } finally {
      if (this.current.get(p.id) === note) this.current.delete(p.id)
      this.grants.push(note)
    }
  }

  private resumed(draining: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.waiting.delete(end)
        draining.removeEventListener('abort', end)
        resolve()
      }
      this.waiting.add(end)
      draining.addEventListener('abort', end)
    })
  }

  private heard(event: TelemetryEvent): void {
    switch (event.type) {
      case 'session-opened':
        this.sessionOpenedMs = machineMs()
        return
      case 'granted':
        if (this.firstGrantMs === 0) this.firstGrantMs = machineMs()
        return
      // A grant that was doubted before it was acquired opens without a word of serving.
      case 'reopened':
      case 'serving':
        this.serving.add(event.partition)
        this.lastServingMs = machineMs()
        this.changed(this.lastServingMs)
        return
      case 'draining': {
        const nowMs = machineMs()
        if (this.firstDrainingMs === 0) this.firstDrainingMs = nowMs
        const note = this.current.get(event.partition)
        if (note !== undefined) note.inFlight = event.inFlight
        this.stopped(event.partition, nowMs)
        return
      }
      case 'suspected':
        this.stopped(event.partition, machineMs())
        return
      case 'lost':
        this.lost += 1
        this.stopped(event.partition, machineMs())
        return
      case 'alarm':
        console.error(`${event.code}: ${event.detail}`)
        return
      default:
    }
  }

  private stopped(partition: number, nowMs: number): void {
    if (this.serving.delete(partition)) this.changed(nowMs)
  }

  private changed(nowMs: number): void {
    this.changedAtMs = nowMs
    this.telling ??= setTimeout(() => this.say(), TELL_MS)
  }

  say(): void {
    this.telling = null
    this.tell({ serving: this.serving.size, changedAtMs: this.changedAtMs })
  }

  /** Milliseconds of processor time and bytes of heap that this process has used. */
  usage(): { readonly cpuMs: number; readonly heapBytes: number } {
    const { user, system } = process.cpuUsage()
    global.gc?.()
    return { cpuMs: (user + system) / 1000, heapBytes: process.memoryUsage().heapUsed }
  }
}
