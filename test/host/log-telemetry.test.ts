// Plan: log every event into memory; read the lines back as the log's readers would.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { combineTelemetry } from '../../src/host/combine-telemetry.ts'
import { createLogTelemetry } from '../../src/host/log-telemetry.ts'
import { createLogger, type LoggerOptions, redactText } from '../../src/host/logger.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { EVENT_BY_TYPE, EVERY_EVENT } from './every-event.ts'

function logInto(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const logger = createLogger({ level: 'debug', pretty: false, destination, ...options })
  return { lines, logger, parsed: () => lines.map((line) => JSON.parse(line)) }
}

describe('log telemetry', () => {
  test('every event, logged, is one line with its own fields flat', () => {
    const { lines, logger, parsed } = logInto()
    const telemetry = createLogTelemetry(logger)
    for (const event of EVERY_EVENT) telemetry.record(event)
    assert.equal(lines.length, EVERY_EVENT.length)
    for (const [at, line] of parsed().entries()) {
      const { type, ...fields } = EVERY_EVENT[at] as TelemetryEvent
      assert.ok(lines[at]?.endsWith('\n') && lines[at]?.indexOf('\n') === lines[at].length - 1)
      assert.equal(line.event, type)
      assert.ok(line.msg.length > 0 && line.level !== undefined && line.time !== undefined)
      for (const [name, value] of Object.entries(fields)) {
        if (name === 'detail') assert.equal(line.detail, redactText(String(value)))
        else assert.deepEqual(line[name], value, `${type} ${name}`)
      }
    }
  })

  test('levels, by event, tell trouble from transitions', () => {
    const { logger, parsed } = logInto()
    const telemetry = createLogTelemetry(logger)
    for (const event of EVERY_EVENT) telemetry.record(event)
    telemetry.record({ ...EVENT_BY_TYPE.alarm, code: 'mass-expiry' })
    telemetry.record({ ...EVENT_BY_TYPE['session-ended'], cause: 'closed' })
    telemetry.record({ ...EVENT_BY_TYPE['store-reachable'], reachable: true })
    const levels = parsed().map(({ level, event }) => `${level} ${event}`)
    for (const expected of [
      ...['error alarm', 'warn alarm', 'debug session-proved', 'debug http-request'],
      ...['debug work-refused', 'info granted', 'info released', 'warn lost', 'warn session-ended'],
      ...['info session-ended', 'warn store-reachable', 'info store-reachable', 'warn run-failed'],
    ]) {
      assert.ok(levels.includes(expected), expected)
    }
  })

  test('a line of a partition, says which grant and which member', () => {
    const { logger, parsed } = logInto()
    createLogTelemetry(logger).record(EVENT_BY_TYPE.granted)
    assert.equal(parsed()[0].msg, 'granted: orders/17@1764440000.5 orders-2')
  })

  test('refused work, many times in a second, is one line and a count', () => {
    const { logger, parsed } = logInto()
    let nowMs = 0
    const telemetry = createLogTelemetry(logger, () => nowMs)
    const refused = EVENT_BY_TYPE['work-refused']
    for (let time = 0; time < 500; time++) telemetry.record(refused)
    telemetry.record({ ...refused, reason: 'lost' })
    nowMs = 1000
    telemetry.record(refused)
    assert.deepEqual(
      parsed().map(({ reason, leftOut }) => [reason, leftOut]),
      [
        ['draining', 0],
        ['lost', 0],
        ['draining', 499],
      ],
    )
  })

  test('a level above an event, costs no line', () => {
    const { lines, logger } = logInto({ level: 'warn' })
    const telemetry = createLogTelemetry(logger)
    telemetry.record(EVENT_BY_TYPE.granted)
    assert.equal(lines.length, 0)
    telemetry.record(EVENT_BY_TYPE.alarm)
    assert.equal(lines.length, 1)
  })

  test('several receivers, combined, get each event in order', () => {
    const got: string[] = []
    const one = { record: (event: TelemetryEvent) => got.push(`one ${event.type}`) }
    const two = { record: (event: TelemetryEvent) => got.push(`two ${event.type}`) }
    combineTelemetry(one, two).record(EVENT_BY_TYPE.lost)
    assert.deepEqual(got, ['one lost', 'two lost'])
  })
})

describe('logger', () => {
  test('secrets, in fields, in URLs and as bearer tokens, never reach a line', () => {
    for (const pretty of [false, true]) {
      const { lines, logger } = logInto({ pretty, colour: false })
      const telemetry = createLogTelemetry(logger)
      telemetry.record(EVENT_BY_TYPE['session-renewal-failed'])
      logger.info({
        password: 'hunter2',
        nats: { creds: 'hunter2', tls: { privateKey: 'hunter2' } },
      })
      logger.error({ err: new Error('401 for Bearer hunter2 at nats://bob:hunter2@n1:4222') })
      logger.warn('asked with Authorization: Bearer hunter2, refused')
      assert.ok(lines.length >= 4)
      const text = lines.join('')
      assert.ok(!text.includes('hunter2'), text)
      assert.ok(text.includes('http://[redacted]@10.0.0.1:2379'))
    }
  })

  test('readable lines, for a terminal, are one line each with message and fields', () => {
    const { lines, logger } = logInto({ pretty: true, colour: false })
    createLogTelemetry(logger).record(EVENT_BY_TYPE.granted)
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', /^\[[\d:.]+\] INFO: granted: orders\/17@1764440000\.5 orders-2 \{/)
  })

  test('a process that exits at once, has all its lines on standard error and none on output', () => {
    const source = `
      import { createLogger } from './src/host/logger.ts'
      const logger = createLogger({ level: 'info', fields: { member: 'orders-2' } })
      for (let line = 0; line < 500; line++) logger.info({ line }, 'said')
      process.exit(7)`
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', source],
      { cwd: new URL('../..', import.meta.url), encoding: 'utf8', timeout: 60_000 },
    )
    assert.deepEqual([status, stdout], [7, ''])
    const lines = stderr.trimEnd().split('\n')
    assert.equal(lines.length, 500)
    const last = JSON.parse(lines[499] ?? '')
    assert.deepEqual([last.line, last.member, last.msg], [499, 'orders-2', 'said'])
  })
})
