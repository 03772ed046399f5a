/**
 * The reply to `owner?key=`, sent past the framework, whose own reply costs as much again as all of this:
 * no serializer, no hooks (what they would do is done here) and no request id.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../ports/clock.ts'
import type { GroupView } from '../ports/group-access.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { OwnerAnswers } from './owner-answer.ts'

export const OWNER_ROUTE = '/v1/groups/:group/owner'

const JSON_TYPE = 'application/json; charset=utf-8'

export type OwnerReplies = {
  of(group: string, view: GroupView): OwnerAnswers
  /** The request began at `beganMs`, monotonic. @throws before anything is sent. */
  send(answers: OwnerAnswers, key: string, to: OwnerRequest): void
  record(method: string, status: number, beganMs: number): void
}

export type OwnerRequest = {
  readonly method: string
  readonly response: ServerResponse
  readonly beganMs: number
}

export function createOwnerReplies(clock: Clock, telemetry: Telemetry): OwnerReplies {
  const byGroup = new Map<string, OwnerAnswers>()
  const record = (method: string, status: number, beganMs: number) => {
    const tookMs = clock.monotonicMs() - beganMs
    telemetry.record({ type: 'http-request', route: OWNER_ROUTE, method, status, tookMs })
  }
  return {
    record,
    of(group, view) {
      const known = byGroup.get(group)
      if (known?.isOf(view) === true) return known
      const answers = new OwnerAnswers(group, view, clock)
      byGroup.set(group, answers)
      return answers
    },
    send(answers, key, { method, response, beganMs }) {
      const { etag, text } = answers.freshness()
      const owner = answers.ofKey(key)
      const length = owner.bytes + text.length
      response.writeHead(200, ['content-type', JSON_TYPE, 'etag', etag, 'content-length', length])
      response.end(method === 'HEAD' ? undefined : owner.text + text)
      record(method, 200, beganMs)
    },
  }
}
