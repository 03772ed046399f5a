/** Faults of the etcd cluster and of NATS, which meet everybody. */
import type { Availability } from '../../src/testing/index.ts'
import type { Hit, Strike } from './fault.ts'
import type { FaultKind } from './fault-kinds.ts'
import type { Effect } from './weather.ts'
import type { World } from './world.ts'

/** The worse one wins where two overlap. */
const AVAILABILITIES = ['up', 'stuck', 'no-leader', 'down'] as const satisfies Availability[]

const OUTAGES: Partial<Record<FaultKind, Availability>> = {
  'quorum-loss': 'no-leader',
  'etcd-stuck': 'stuck',
  'etcd-down': 'down',
}

const EFFECTS: Partial<Record<FaultKind, Effect>> = {
  'slow-disk': { requestDelayMs: 1_200 },
  'stale-reads': { staleRead: 0.5 },
  'nats-loss': { natsDeaf: 0.3, natsMute: 0.1 },
}

/** What the servers suffer from, by fault. */
export class ServerFaults {
  private readonly world: World
  private readonly outages = new Map<number, Availability>()
  private readonly acknowledging = new Set<number>()
  private readonly natsOutages = new Set<number>()
  /** When etcd was last not fully there, or its leader changed. */
  lastEtcdFaultMs = Number.NEGATIVE_INFINITY
  /** Since when etcd has answered nobody; null: it does. */
  downSinceMs: number | null = null

  constructor(world: World) {
    this.world = world
  }

  strike({ fault, id }: Strike): Hit | null {
    const end = this.begin(fault.kind, id, fault.other)
    if (end === undefined) return null
    const isNats = fault.kind.startsWith('nats')
    if (!isNats) this.touched()
    return {
      on: isNats ? 'nats' : 'etcd',
      end:
        end &&
        (() => {
          end()
          if (!isNats) this.touched()
        }),
    }
  }

  private touched(): void {
    this.lastEtcdFaultMs = this.world.nowMs
    this.world.maps.etcdDisturbed()
  }

  private begin(kind: FaultKind, id: number, other: number): (() => void) | null | undefined {
    const { world } = this
    const { etcd } = world.base
    const outage = OUTAGES[kind]
    if (outage !== undefined) return this.outage(id, outage)
    const effect = EFFECTS[kind]
    if (effect !== undefined) return this.everywhere(id, effect)
    switch (kind) {
      case 'leader-change':
        etcd.changeLeader()
        return null
      case 'etcd-restart':
        etcd.restart()
        return null
      case 'dead-lease-acks':
        this.acknowledging.add(id)
        etcd.acknowledgeDeadLeases(true)
        return () => {
          this.acknowledging.delete(id)
          etcd.acknowledgeDeadLeases(this.acknowledging.size > 0)
        }
      case 'watch-gap': {
        const end = this.everywhere(id, { skipHistory: 0.3 })
        world.maps.watchesLose(true)
        for (const process of [...world.members, ...world.serves]) process.reconnectStore()
        return () => {
          end()
          world.maps.watchesLose(false)
        }
      }
      case 'compaction':
        return compact(world, other)
      case 'clock-jump':
        world.isHonest = false
        etcd.jumpClock(1_000 + (other % 10) * 1_000)
        return null
      case 'restore':
        return this.restore(other)
      case 'wipe':
        world.wipe()
        return null
      case 'nats-outage':
        this.natsOutages.add(id)
        world.base.nats.stop()
        return () => {
          this.natsOutages.delete(id)
          if (this.natsOutages.size === 0) world.base.nats.start()
        }
      default:
        throw new Error(`no fault of a server: ${kind}`)
    }
  }

  private outage(id: number, availability: Availability): () => void {
    this.outages.set(id, availability)
    this.setAvailability()
    return () => {
      this.outages.delete(id)
      this.setAvailability()
    }
  }

  private setAvailability(): void {
    const worst = Math.max(
      0,
      ...[...this.outages.values()].map((name) => AVAILABILITIES.indexOf(name)),
    )
    if (worst === 0) this.downSinceMs = null
    else this.downSinceMs ??= this.world.nowMs
    this.world.base.etcd.setAvailability(AVAILABILITIES[worst] ?? 'up')
  }

  private everywhere(id: number, effect: Effect): () => void {
    const { world } = this
    world.base.effects.set(id, effect)
    for (const process of world.processes()) process.applyWeather()
    return () => {
      world.base.effects.delete(id)
      for (const process of world.processes()) process.applyWeather()
    }
  }

  /** From one of the last snapshots; its end is an operator's, who raises the incarnation. */
  private restore(other: number): (() => void) | undefined {
    const { world } = this
    const snapshot = world.snapshots[other % Math.max(1, world.snapshots.length)]
    if (snapshot === undefined) return undefined
    world.restore(snapshot)
    if (other % 2 === 0) restartAll(world)
    return () => raiseUntilDone(world)
  }
}

function compact(world: World, other: number): null | undefined {
  const revision = world.base.etcd.revision() - (other % 20)
  if (revision <= world.compactedTo) return undefined
  world.compactedTo = revision
  world.base.etcd.compact(revision)
  return null
}

/** With all processes started anew, nobody remembers what the resources have sealed. */
function restartAll(world: World): void {
  for (const process of [...world.members, ...world.serves]) process.kill('restarted with etcd')
}

const RAISE_EVERY_MS = 2_000

/** An operator who does not give up while etcd is behind, or a partition halted. */
export function raiseUntilDone(world: World): void {
  const { base, nowMs } = world
  if (!world.needsRaise || base.isClosing || nowMs < world.raisedAtMs + RAISE_EVERY_MS) return
  base.clock.schedule(RAISE_EVERY_MS, () => raiseUntilDone(world))
  const service = world.service()
  if (service === null) return
  world.raisedAtMs = nowMs
  service.admin
    .raiseIncarnation({ by: 'operator', why: 'etcd was restored' })
    .catch((error: unknown) => base.box.crash(error, 'raiseIncarnation'))
}
