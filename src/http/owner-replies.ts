/**
 * The reply to `owner?key=`, sent past the framework, whose own reply costs as much again as all of this:
 * no serializer, no hooks (what they would do is done here) and no request id.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../ports/clock.ts'
import type { GroupView } from '../ports/group-access.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { OwnerAnswers } from './owner-answer.ts'
import { isUnchanged } from './version-headers.ts'

export const OWNER_ROUTE = '/v1/groups/:group/owner'

const JSON_TYPE = 'application/json; charset=utf-8'

export type OwnerReplies = {
  /** Sends 200, or 304 to who knows the version. What it throws before anything is sent is the caller's. */
  send(key: string, of: Answered, request: IncomingMessage, response: ServerResponse): void
  /** The request began at `beganMs`, monotonic [now]. */
  record(method: string, status: number, beganMs?: number): void
}

type Answered = { readonly group: string; readonly view: GroupView }

export function createOwnerReplies(clock: Clock, telemetry: Telemetry): OwnerReplies {
  const byGroup = new Map<string, OwnerAnswers>()
  const answersOf = ({ group, view }: Answered): OwnerAnswers => {
    const known = byGroup.get(group)
    if (known?.isOf(view) === true) return known
    const answers = new OwnerAnswers(group, view, clock)
    byGroup.set(group, answers)
    return answers
  }
  const record = (method: string, status: number, beganMs = clock.monotonicMs()) => {
    const tookMs = clock.monotonicMs() - beganMs
    telemetry.record({ type: 'http-request', route: OWNER_ROUTE, method, status, tookMs })
  }
  return {
    record,
    send(key, of, { method = 'GET', headers }, response) {
      const beganMs = clock.monotonicMs()
      const answers = answersOf(of)
      const { etag, text } = answers.freshness()
      if (isUnchanged(headers['if-none-match'], etag)) {
        response.writeHead(304, ['etag', etag]).end()
        record(method, 304, beganMs)
        return
      }
      const owner = answers.ofKey(key)
      const length = owner.bytes + text.length
      response.writeHead(200, ['content-type', JSON_TYPE, 'etag', etag, 'content-length', length])
      response.end(method === 'HEAD' ? undefined : owner.text + text)
      record(method, 200, beganMs)
    },
  }
}
