/** A serve process of the simulated world: production's `serveGroup`, rebalancer and all. */

import { isTenureError } from '../../src/core/tenure-error.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { type ServedGroup, serveGroup } from '../../src/runtime/serve-group.ts'
import { createStandingAlarms } from '../../src/runtime/standing-alarms.ts'
import type { Life } from './life.ts'
import { type Running, WorldProcess } from './world-process.ts'

export class ServeProcess extends WorldProcess {
  served: ServedGroup | null = null

  get isLeader(): boolean {
    return this.isUp && this.served?.isLeader() === true
  }

  protected begin({ life, store, broadcast, random }: Running): void {
    const { group, keys, orderOf, settings } = this.base
    const { clock } = life
    const alarms = createStandingAlarms(clock)
    const telemetry = {
      record: (event: TelemetryEvent) => {
        alarms.record(event)
        this.record(life, event)
      },
    }
    serveGroup({
      ...{ group, keys, store, broadcast, clock, random, telemetry, alarms, orderOf, settings },
    }).then(
      (served) => {
        if (!life.isOver) this.served = served
      },
      (error: unknown) => {
        if (life.isOver) return
        if (!isTenureError(error, 'store-unreachable')) this.base.box.crash(error, life.name)
        this.kill('the store cannot be reached')
      },
    )
  }

  protected override ending(): void {
    this.served = null
  }

  private record(life: Life, event: TelemetryEvent): void {
    if (life.isOver) return
    switch (event.type) {
      case 'rebalancer-elected':
      case 'rebalancer-deposed':
        this.base.trace.note(null, `${life.name} ${event.type}`)
        return
      case 'move-requested':
        this.base.trace.note(
          event.partition,
          `${life.name} asks for a move from ${event.from} to ${event.to} (${event.reason})`,
        )
        return
      case 'move-ended':
        this.base.trace.note(event.partition, `${life.name} move ended: ${event.outcome}`)
        return
      case 'eviction-marked':
      case 'eviction-closed':
        this.base.trace.note(null, `${life.name} ${event.type} ${event.member}`)
        return
      case 'alarm':
        this.base.trace.note(null, `${life.name} alarm ${event.code}: ${event.detail}`)
        if (event.code === 'invariant-broken') this.base.box.crash(event.detail, life.name)
        return
      default:
        return
    }
  }
}
