/**
 * The service of the settlement example, in the test's own process: a fence per partition, tenants with
 * the due time of their last settlement, and idempotency keys, committed in one step. Requests come under
 * `/<member>/…`, so that those of one member can be held back.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decideEffect, decideSeal, type Sealed } from '../../src/core/fence.ts'
import type { Token } from '../../src/core/token.ts'
import type { CleanUp } from '../support/servers.ts'

export type Settlement = {
  readonly tenant: string
  readonly dueMs: number
  readonly member: string
  readonly partition: number
}

type Body = {
  readonly token: Token
  readonly tenant: string
  readonly dueMs: number
  readonly idempotencyKey: string
}

export class SettlementService {
  readonly settled: Settlement[] = []
  /** Settlements refused since a newer token had been sealed. */
  readonly refused: Settlement[] = []
  url = ''
  private readonly fences = new Map<number, Sealed & { readonly member: string }>()
  private readonly keys = new Set<string>()
  private readonly lastDueMs = new Map<string, number>()
  private readonly tenants: readonly string[]
  private readonly sinceMs = Date.now()
  private hold: { readonly member: string; readonly waiting: Settlement[] } | null = null
  private letGo: (() => void) | null = null
  private held: Promise<void> = Promise.resolve()

  constructor(tenants: readonly string[]) {
    this.tenants = tenants
  }

  async listen(cleanUp: CleanUp): Promise<void> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', async () => {
        const [, member = '', what = ''] = (request.url ?? '').split('/')
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Body
        const { status, value } = await this.answer(member, what, body)
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(value))
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    cleanUp.after(async () => {
      this.release()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    })
  }

  /** The member's settlements wait from now on; those that do are in the list. */
  holdBack(member: string): readonly Settlement[] {
    const waiting: Settlement[] = []
    this.hold = { member, waiting }
    this.held = new Promise((resolve) => {
      this.letGo = resolve
    })
    return waiting
  }

  release(): void {
    this.hold = null
    this.letGo?.()
  }

  /** Who sealed the partition last. */
  sealedBy(partition: number): string | null {
    return this.fences.get(partition)?.member ?? null
  }

  settlementsOf(tenant: string): readonly number[] {
    return this.settled.filter((one) => one.tenant === tenant).map(({ dueMs }) => dueMs)
  }

  private async answer(member: string, what: string, body: Body) {
    const { token, tenant, dueMs, idempotencyKey } = body
    const { partition, incarnation, generation, session } = token
    if (what === 'settle' && this.hold?.member === member) {
      this.hold.waiting.push({ tenant, dueMs, member, partition })
      await this.held
    }
    const highest = this.fences.get(partition) ?? null
    if (what === 'seal') {
      if (decideSeal(highest, token) === 'refuse') return { status: 409, value: { highest } }
      this.fences.set(partition, { incarnation, generation, session, member })
      return { status: 200, value: { ok: true } }
    }
    if (what === 'tenants') {
      const tenants = this.tenants.map((key) => {
        return { key, lastDueMs: this.lastDueMs.get(key) ?? null, sinceMs: this.sinceMs }
      })
      return { status: 200, value: { tenants } }
    }
    const settlement = { tenant, dueMs, member, partition }
    if (decideEffect(highest, token) !== 'accept') {
      this.refused.push(settlement)
      return { status: 409, value: { highest } }
    }
    if (!this.keys.has(idempotencyKey)) {
      this.keys.add(idempotencyKey)
      this.settled.push(settlement)
      this.lastDueMs.set(tenant, Math.max(dueMs, this.lastDueMs.get(tenant) ?? 0))
    }
    return { status: 200, value: {} }
  }
}
