import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { findServerProgram, startEtcdServer, startNatsServer } from '../../src/dev/servers.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import { eventually } from '../support/eventually.ts'
import { startEtcd, startEtcdCluster, startNats, temporaryFolder } from '../support/servers.ts'

const PARENT = fileURLToPath(new URL('./orphan-parent.ts', import.meta.url))

for (const mode of ['run', 'pause']) {
  test(`a parent that is killed while its servers ${mode} leaves no process and no port behind`, async (t) => {
    const folder = await temporaryFolder(t)
    // The loader runs inside the process, so that this is the parent itself and no wrapper of it.
    const parent = spawn(process.execPath, ['--import', 'tsx', PARENT, folder, mode], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let printed = ''
    for await (const chunk of parent.stdout) {
      printed += String(chunk)
      if (printed.includes('\n')) break
    }
    const { pids, ports } = JSON.parse(printed) as { pids: number[]; ports: number[] }
    assert.ok(pids.every(isAlive))
    assert.deepEqual(await Promise.all(ports.map(isOpen)), [true, true, true])

    parent.kill('SIGKILL')
    if (parent.exitCode === null && parent.signalCode === null) await once(parent, 'exit')
    await eventually(() => !pids.some(isAlive), { timeoutMs: 10_000, what: 'both servers ended' })
    await eventually(() => processesNaming(folder).length === 0, {
      timeoutMs: 10_000,
      what: 'their shells ended',
    })
    assert.deepEqual(await Promise.all(ports.map(isOpen)), [false, false, false])
  })
}

test('a server stopped, killed, paused and restarted keeps its port and data', async (t) => {
  const etcd = await startEtcd(t)
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  t.after(() => store.close())
  const write = () =>
    store.transact(
      { compare: [], success: [{ type: 'put', key: '/kept', value: 'yes' }], failure: [] },
      { timeoutMs: 500 },
    )
  await eventually(async () => (await write()).ok, { timeoutMs: 10_000, what: 'a write' })
  const before = etcd.pid()
  etcd.pause()
  assert.equal((await write()).ok, false)
  etcd.resume()
  await eventually(async () => (await write()).ok, { timeoutMs: 10_000, what: 'a write again' })

  await etcd.kill()
  assert.equal(etcd.running(), false)
  assert.equal(isAlive(before), false)
  await etcd.restart()
  assert.notEqual(etcd.pid(), before)
  await eventually(
    async () => {
      const page = await store.list({ prefix: '/kept', limit: 1 }, { timeoutMs: 500 })
      return page.ok && page.value.entries[0]?.value === 'yes'
    },
    { timeoutMs: 10_000, what: 'the data is there' },
  )
  const second = etcd.pid()
  await etcd.stop()
  assert.equal(isAlive(second), false)
  assert.equal(await isOpen(etcd.clientPort), false)
})

test('a paused server still stops', async (t) => {
  const nats = await startNats(t)
  const pid = nats.pid()
  nats.pause()
  await nats.stop()
  assert.equal(isAlive(pid), false)
})

test('three members form a cluster that outlives one of them', async (t) => {
  const cluster = await startEtcdCluster(t, { size: 3 })
  const [first, second] = cluster.members
  assert.ok(first !== undefined && second !== undefined)
  await first.kill()
  const store = createEtcdStore({ endpoints: [second.endpoint] })
  t.after(() => store.close())
  await eventually(
    async () =>
      (
        await store.transact(
          { compare: [], success: [{ type: 'put', key: '/a', value: '' }], failure: [] },
          { timeoutMs: 1000 },
        )
      ).ok,
    { timeoutMs: 10_000, what: 'a write through two of three' },
  )
})

test('a server that ends at start rejects with the end of its log', async (t) => {
  const directory = await temporaryFolder(t)
  await assert.rejects(
    startEtcdServer({ directory, extraArgs: ['--no-such-flag'] }),
    (error) => isTenureError(error, 'conflict') && /no-such-flag/.test(error.message),
  )
})

test('a port that another process holds is never taken for the server that could not have it', async (t) => {
  const nats = await startNats(t)
  const directory = await temporaryFolder(t)
  await assert.rejects(startNatsServer({ directory, port: nats.port }), (error) =>
    isTenureError(error, 'conflict'),
  )
})

test('a program is found where it was named, else on PATH or in the usual folders, else its remedy is told', async () => {
  assert.match(findServerProgram('etcd', undefined, { PATH: '' }), /etcd$/)
  assert.match(findServerProgram('nats-server', undefined, { PATH: '' }), /nats-server$/)
  assert.equal(findServerProgram('etcd', process.execPath, {}), process.execPath)
  assert.equal(
    findServerProgram('etcd', undefined, { TENURE_ETCD_BIN: process.execPath }),
    process.execPath,
  )
  assert.throws(
    () => findServerProgram('nats-server', undefined, { TENURE_NATS_BIN: '/none/nats-server' }),
    (error) =>
      isTenureError(error, 'binary-missing') && error.message.includes('/none/nats-server'),
  )
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // What nobody has waited for yet is no longer running either.
  return processState(pid) !== 'Z'
}

function processState(pid: number): string {
  try {
    return /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''
  } catch {
    return ''
  }
}

/** Processes of this machine whose command line names the folder. */
function processesNaming(folder: string): readonly string[] {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      return readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
