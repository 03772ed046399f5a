/**
 * Plan: `tenure doctor` as a program against a real etcd and nats-server, sound and with an alarm.
 */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import type { DoctorReport } from '../../src/cli/doctor.ts'
import { setNoSpaceAlarm } from '../support/etcd-admin.ts'
import { startEtcd, startNats } from '../support/servers.ts'
import { start } from './cli-world.ts'

test('tenure doctor, real servers, knows their versions, and fails when etcd has an alarm', async (t) => {
  const [etcd, nats] = await Promise.all([startEtcd(t), startNats(t)])
  const variables = {
    TENURE_ETCD_ENDPOINTS: etcd.endpoint,
    TENURE_NATS_SERVERS: nats.url,
  }
  const doctor = async () => {
    const { exitCode, stdout, stderr } = await start(['doctor', '--json'], tmpdir(), variables)
      .ended
    assert.equal(stderr, '')
    const { verdict, checks } = JSON.parse(stdout) as DoctorReport
    const byName = new Map(checks.map((check) => [check.name, check]))
    return { exitCode, verdict, byName, names: checks.map(({ name }) => name) }
  }
  const sound = await doctor()
  assert.equal(sound.exitCode, 0)
  for (const name of ['etcd version', `nats ${nats.url}`, 'etcd program', 'nats-server program']) {
    assert.match(sound.byName.get(name)?.detail ?? '', /\d+\.\d+\.\d+/, name)
  }
  assert.equal(sound.byName.get('etcd leader')?.verdict, 'ok')
  assert.ok(sound.byName.has('etcd latency'), 'round trips were measured')

  await setNoSpaceAlarm(etcd.endpoint, true)
  const alarmed = await doctor()
  assert.deepEqual([alarmed.exitCode, alarmed.verdict], [1, 'fail'])
  assert.equal(alarmed.byName.get('etcd alarms')?.detail, 'NOSPACE')
})
