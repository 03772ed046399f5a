/**
 * The broadcast as one process holds it. The in-memory client tells of a lost connection at once; here
 * that news, and the end of a request, reach the process only while it runs.
 */
import type {
  Broadcast,
  BroadcastStatus,
  Message,
  Subscription,
} from '../../src/ports/broadcast.ts'
import type { MemoryBroadcast } from '../../src/testing/index.ts'
import type { Life } from './life.ts'

export class ProcessBroadcast implements Broadcast {
  private readonly inner: MemoryBroadcast
  private readonly life: Life

  constructor(inner: MemoryBroadcast, life: Life) {
    this.inner = inner
    this.life = life
  }

  publish(subject: string, data: Uint8Array): boolean {
    return this.inner.publish(subject, data)
  }

  subscribe(
    subject: string,
    handler: (message: Message) => void,
    options?: { readonly queue?: string },
  ): Subscription {
    return this.inner.subscribe(subject, handler, options)
  }

  async request(
    subject: string,
    data: Uint8Array,
    options: { readonly timeoutMs: number },
    onReply: (data: Uint8Array) => boolean,
  ): Promise<boolean> {
    const complete = await this.inner.request(subject, data, options, onReply)
    await this.life.running()
    return complete
  }

  maxPayloadBytes(): number {
    return this.inner.maxPayloadBytes()
  }

  status(): BroadcastStatus {
    return this.inner.status()
  }

  onStatus(listener: (status: BroadcastStatus) => void): Subscription {
    return this.inner.onStatus((status) => {
      if (this.life.isOver) return
      if (this.life.isPaused) this.life.clock.schedule(0, () => listener(status))
      else listener(status)
    })
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}
