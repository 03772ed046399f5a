/**
 * A member's sessions, one after the other. Each is a `SessionDriver` with a fresh random id; none is
 * ever reused.
 *
 *   waiting ──▶ opening ──▶ live ──lost──▶ waiting ──▶ …
 *      ▲           │ name in use: until the key is absent
 *      └───────────┘      (a newcomer gives up after three TTLs: `member-name-in-use`)
 *   closed | evicted: no further session
 *
 * A starting process whose name is taken waits for the old session to run out: that is its own former
 * self after a crash. A holder that still lives after three TTLs in which etcd answered all the time is
 * another process of the same name: a new leader gives every lease its TTL in full again, so a dead session
 * outlives each change of the leader by a TTL, and several may follow each other. A process that was live
 * before waits as long as it takes; it never takes the name over (V12).
 */
import type { GroupName, MemberName, SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { MemberRecord } from '../core/member-record.ts'
import { encodeMemberRecord } from '../core/member-record.ts'
import type { SessionEnd, SessionSettings } from '../core/session.ts'
import { memberSessionKeys } from '../core/session.ts'
import { createTenureError, type TenureError } from '../core/tenure-error.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { SessionEndCause, Telemetry } from '../ports/telemetry.ts'
import type { Mirror } from './mirror.ts'
import { SessionDriver } from './session-driver.ts'

export type MemberSessionListener = {
  live(session: SessionDriver): void
  /** The deadline moved: waiting work may look again. */
  proved(): void
  /** Of a session that was live. */
  ended(session: SessionDriver, cause: SessionEndCause): void
  /** No session will follow. */
  failed(error: TenureError): void
}

export type MemberSessionOptions = {
  readonly group: GroupName
  readonly member: MemberName
  readonly keys: GroupKeys
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly mirror: Mirror
  readonly settings: SessionSettings
  /** The member's record for a session. */
  readonly describe: (session: SessionId, state: MemberRecord['state']) => MemberRecord
  readonly listener: MemberSessionListener
}

const RETRY_FIRST_MS = 100
const RETRY_MAX_MS = 2000
const LEAVING_TIMEOUT_MS = 1500
/** How long a name may be in use, with etcd answering, before a newcomer takes its holder for alive. */
const NAME_PATIENCE_TTLS = 3

export class MemberSession {
  /** The session under way, live or not. */
  current: SessionDriver | null = null
  private readonly options: MemberSessionOptions
  private timer: Timer | null = null
  private retryMs = RETRY_FIRST_MS
  private takenSinceMs: number | null = null
  private wasLive = false
  private stopped = false
  private reachable = true
  private readonly unsubscribe: () => void

  constructor(options: MemberSessionOptions) {
    this.options = options
    this.unsubscribe = options.mirror.subscribe({
      changed: ({ members }) => {
        // The name just became free: no need to wait for the next look.
        if (members && this.timer !== null && !this.nameTaken()) this.open()
      },
      rewound: () => {},
    })
    this.open()
  }

  /** The live session, or null. */
  get live(): SessionDriver | null {
    return this.current?.isLive === true ? this.current : null
  }

  /** Ends the session locally at once, then its lease. No further one is opened. */
  async close(cause: 'closed' | 'evicted' | 'drain-overdue' | 'invariant-broken'): Promise<void> {
    this.stopped = true
    this.timer?.cancel()
    this.unsubscribe()
    await this.current?.close(cause)
  }

  /** Tells the group that this member takes nothing more. One write; best effort, retried while live. */
  async announceLeaving(): Promise<void> {
    const { keys, member, store, describe } = this.options
    const driver = this.current
    if (driver === null) return
    const { session } = driver
    const key = keys.member(member)
    const value = encodeMemberRecord(describe(session, 'leaving'))
    while (driver.isLive) {
      const reply = await store.transact(
        {
          compare: [{ type: 'lease-equals', key, session }],
          success: [{ type: 'put', key, value, session }],
          failure: [],
        },
        { timeoutMs: LEAVING_TIMEOUT_MS },
      )
      if (reply.ok || reply.reason === 'refused') return
    }
  }

  private open(): void {
    if (this.stopped) return
    this.timer?.cancel()
    this.timer = null
    const { keys, member, store, clock, random, settings, describe } = this.options
    const session = random.sessionId()
    let opened = false
    const driver: SessionDriver = new SessionDriver({
      session,
      store,
      clock,
      keys: memberSessionKeys(keys, member),
      value: encodeMemberRecord(describe(session, 'active')),
      settings,
      listener: {
        opened: (_, ttlMs) => {
          opened = true
          this.opened(driver, ttlMs)
        },
        proved: (roundTripMs, leftMs) => this.proved(roundTripMs, leftMs),
        renewalFailed: (detail) => this.renewalFailed(driver, detail),
        ended: (end) => this.ended(driver, opened, end),
      },
    })
    this.current = driver
  }

  private opened(driver: SessionDriver, ttlMs: number): void {
    const { group, member, telemetry, listener } = this.options
    this.wasLive = true
    this.takenSinceMs = null
    this.retryMs = RETRY_FIRST_MS
    this.setReachable(true, '')
    telemetry.record({ type: 'session-opened', group, member, session: driver.session, ttlMs })
    listener.live(driver)
  }

  private proved(roundTripMs: number, leftMs: number): void {
    const { group, member, telemetry, listener } = this.options
    this.setReachable(true, '')
    telemetry.record({ type: 'session-proved', group, member, roundTripMs, leftMs })
    listener.proved()
  }

  private renewalFailed(driver: SessionDriver, detail: string): void {
    const { group, member, telemetry, clock } = this.options
    const leftMs = Math.max(0, driver.deadlineMs - clock.monotonicMs())
    telemetry.record({ type: 'session-renewal-failed', group, member, detail, leftMs })
    this.setReachable(false, detail)
  }

  private ended(driver: SessionDriver, wasOpened: boolean, end: SessionEnd): void {
    const { group, member, telemetry, listener } = this.options
    const { session } = driver
    if (end.cause === 'open-failed') {
      this.setReachable(false, end.detail)
      this.unanswered()
      return
    }
    if (end.cause === 'name-in-use') {
      if (end.holder !== null) this.nameInUse(end.holder)
      else this.retryLater()
      return
    }
    if (!wasOpened) {
      this.unanswered()
      return
    }
    telemetry.record({ type: 'session-ended', group, member, session, cause: end.cause })
    listener.ended(driver, end.cause)
    if (end.cause === 'evicted' || end.cause === 'drain-overdue') {
      const why = end.cause === 'evicted' ? 'was evicted' : 'overran its drain deadline'
      this.fail(createTenureError('evicted', `member ${member} ${why}: its process must end`))
    } else if (!this.stopped) this.retryLater()
  }

  /** What happened to the name's old session meanwhile is not known: waiting for its end begins anew. */
  private unanswered(): void {
    this.takenSinceMs = null
    this.retryLater()
  }

  private nameInUse(holder: SessionId): void {
    const { group, member, telemetry, clock, settings } = this.options
    const nowMs = clock.monotonicMs()
    if (this.takenSinceMs === null) {
      this.takenSinceMs = nowMs
      telemetry.record({ type: 'name-in-use', group, member, holder })
    }
    if (!this.wasLive && nowMs - this.takenSinceMs > NAME_PATIENCE_TTLS * settings.ttlMs) {
      const message = `member name "${member}" of group "${group}" is in use by a live session: give this process another name, or stop the other one`
      this.fail(createTenureError('member-name-in-use', message, { details: { holder } }))
      return
    }
    this.retryLater()
  }

  private nameTaken(): boolean {
    return this.options.mirror.state.members.has(this.options.member)
  }

  private fail(error: TenureError): void {
    this.stopped = true
    this.unsubscribe()
    this.options.listener.failed(error)
  }

  private retryLater(): void {
    if (this.stopped) return
    const { clock, random } = this.options
    this.timer?.cancel()
    this.timer = clock.schedule(this.retryMs * (0.5 + random.fraction()), () => this.open())
    this.retryMs = Math.min(RETRY_MAX_MS, this.retryMs * 2)
  }

  private setReachable(reachable: boolean, detail: string): void {
    if (reachable === this.reachable) return
    this.reachable = reachable
    this.options.telemetry.record({ type: 'store-reachable', reachable, detail })
  }
}
