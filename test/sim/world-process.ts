/**
 * One place in the world where a process runs: a member, a serve process or an observer, over its starts
 * and ends. It has its own connections, which suffer from the weather of this place and of the world, and
 * a supervisor that starts it again.
 *
 *   idle ──start──▶ running ──kill | ended by itself──▶ idle ──(supervised)──▶ running
 */
import type { Broadcast } from '../../src/ports/broadcast.ts'
import type { MemoryBroadcast, MemoryStore, SeededRandom } from '../../src/testing/index.ts'
import { Life } from './life.ts'
import { ProcessBroadcast } from './process-broadcast.ts'
import { ProcessStore } from './process-store.ts'
import {
  applyToBroadcast,
  applyToStore,
  type Effect,
  FAIR,
  sumOf,
  type Weather,
} from './weather.ts'
import type { WorldBase } from './world-base.ts'

export type Running = {
  readonly life: Life
  readonly store: ProcessStore
  readonly broadcast: Broadcast
  readonly random: SeededRandom
}

export abstract class WorldProcess {
  readonly name: string
  /** When a fault last hit this place or left it. */
  lastFaultMs = Number.NEGATIVE_INFINITY
  /** Faults that last. */
  readonly effects = new Map<number, Effect>()
  running: Running | null = null
  startedAtMs = Number.NEGATIVE_INFINITY
  protected readonly base: WorldBase
  private clients: { readonly store: MemoryStore; readonly broadcast: MemoryBroadcast } | null =
    null
  private weather: Weather = FAIR
  /** Faults that keep it from being started. */
  private readonly holds = new Set<number>()
  private readonly pauses = new Set<number>()
  private starts = 0

  constructor(name: string, base: WorldBase) {
    this.name = name
    this.base = base
  }

  get life(): Life | null {
    return this.running?.life ?? null
  }

  get isUp(): boolean {
    return this.running !== null && !this.running.life.isPaused
  }

  start(): void {
    if (this.running !== null || this.holds.size > 0 || this.base.isClosing) return
    this.starts += 1
    const { clock, etcd, nats, random, ledger } = this.base
    const name = `${this.name}#${this.starts}`
    const process = clock.createProcess({
      onUncaught: (error) => this.base.box.crash(error, name),
    })
    const life = new Life(name, process)
    const store = etcd.connect(name, { clock: process })
    const broadcast = nats.connect(name, { clock: process })
    const own = random.fork(name)
    this.clients = { store, broadcast }
    this.running = {
      life,
      store: new ProcessStore(store, life, ledger, own.fork('doubled')),
      broadcast: new ProcessBroadcast(broadcast, life),
      random: own,
    }
    this.startedAtMs = clock.monotonicMs()
    this.weather = FAIR
    this.base.trace.note(null, `${name} starts`)
    this.applyWeather()
    if (this.pauses.size > 0) process.pause()
    this.begin(this.running)
  }

  /** SIGKILL, or the end of a process that ended by itself; the supervisor starts it again. */
  kill(why: string): void {
    const { running, clients } = this
    if (running === null || clients === null) return
    this.base.trace.note(null, `${running.life.name} ends: ${why}`)
    this.ending(running)
    running.life.clock.kill()
    this.running = null
    this.clients = null
    void clients.store.close()
    void clients.broadcast.close()
    if (this.base.isClosing || this.holds.size > 0) return
    const delayMs = 300 + this.base.random.integer(1_200)
    this.base.clock.schedule(delayMs, () => this.start())
  }

  /** Killed, and not started before `release`. */
  hold(fault: number): void {
    this.holds.add(fault)
    this.kill('killed')
  }

  /** What ends by itself is not started again before `release`. */
  holdBack(fault: number): void {
    this.holds.add(fault)
  }

  release(fault: number): void {
    if (this.holds.delete(fault)) this.start()
  }

  pause(fault: number): void {
    this.pauses.add(fault)
    this.life?.clock.pause()
  }

  resume(fault: number): void {
    if (!this.pauses.delete(fault) || this.pauses.size > 0) return
    this.life?.clock.resume()
  }

  stall(durationMs: number): void {
    this.life?.clock.stall(durationMs)
  }

  suffer(fault: number, effect: Effect): void {
    this.effects.set(fault, effect)
    this.applyWeather()
  }

  recover(fault: number): void {
    if (this.effects.delete(fault)) this.applyWeather()
  }

  /** After a change of what this place or the world suffers from. */
  applyWeather(): void {
    const { running, clients } = this
    if (running === null || clients === null) return
    const now = sumOf([...this.base.effects.values(), ...this.effects.values()])
    applyToStore(clients.store, this.weather, now)
    applyToBroadcast(clients.broadcast, this.weather, now)
    running.store.doubled = now.doubled
    this.weather = now
  }

  silenceWatches(): void {
    this.clients?.store.silenceWatches()
  }

  /** Breaks the connection to the store once; it can be made again at once. */
  reconnectStore(): void {
    this.clients?.store.disconnect()
    if (!this.weather.storeRefused) this.clients?.store.reconnect()
  }

  /** Runs the process's own program. */
  protected abstract begin(running: Running): void

  /** Just before the process is gone. */
  protected ending(_running: Running): void {}
}
