/** What an operator does with backups of etcd, done to a test's own server with its own tool. */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { EtcdServer } from '../../src/dev/servers.ts'

const run = promisify(execFile)

/** Takes a snapshot; the path of its file. */
export async function saveSnapshot(etcd: EtcdServer, name = 'backup'): Promise<string> {
  const file = join(folderOf(etcd), `${name}.db`)
  await etcdctl(['--endpoints', etcd.endpoint, 'snapshot', 'save', file])
  return file
}

/** Ends the server, puts the snapshot in its data's place, and starts it again where it was. */
export async function restoreSnapshot(etcd: EtcdServer, file: string): Promise<void> {
  await etcd.kill()
  const data = await removeData(etcd)
  const peer = `http://127.0.0.1:${etcd.peerPort}`
  await etcdctl([
    ...['snapshot', 'restore', file, '--data-dir', data, '--name', 'etcd'],
    ...['--initial-cluster', `etcd=${peer}`, '--initial-advertise-peer-urls', peer],
  ])
  await etcd.restart()
}

/** Ends the server and starts it again without any data. */
export async function wipe(etcd: EtcdServer): Promise<void> {
  await etcd.kill()
  await removeData(etcd)
  await etcd.restart()
}

async function removeData(etcd: EtcdServer): Promise<string> {
  const data = join(folderOf(etcd), 'data')
  await rm(data, { recursive: true, force: true })
  return data
}

function folderOf(etcd: EtcdServer): string {
  return dirname(etcd.logFile)
}

async function etcdctl(words: readonly string[]): Promise<void> {
  await run('etcdctl', words, {
    env: { PATH: process.env['PATH'], ETCDCTL_API: '3', ETCD_UNSUPPORTED_ARCH: process.arch },
  })
}
