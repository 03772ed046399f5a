/**
 * Real servers for tests: free loopback ports, data in a temporary folder, ended and removed when the
 * test (or the file) is over.
 *
 * In one test: `const etcd = await startEtcd(t)`. For a whole file, at its top level:
 * `const etcd = await startEtcd({ after })` with `after` of `node:test`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type EtcdCluster,
  type EtcdServer,
  type EtcdServerOptions,
  type NatsServer,
  type NatsServerOptions,
  startEtcdCluster as startCluster,
  startEtcdServer,
  startNatsServer,
} from '../../src/dev/servers.ts'

/** A test's context, or `{ after }` of `node:test`. */
export type CleanUp = { after(callback: () => void | Promise<void>): void }

export async function startEtcd(
  cleanUp: CleanUp,
  options: Partial<EtcdServerOptions> = {},
): Promise<EtcdServer> {
  return startIn(cleanUp, options.directory, (directory) =>
    startEtcdServer({ unsafeNoFsync: true, ...options, directory }),
  )
}

export async function startEtcdCluster(
  cleanUp: CleanUp,
  options: { readonly size: number } & Partial<EtcdServerOptions>,
): Promise<EtcdCluster> {
  return startIn(cleanUp, options.directory, (directory) =>
    startCluster({ unsafeNoFsync: true, ...options, directory }),
  )
}

export async function startNats(
  cleanUp: CleanUp,
  options: Partial<NatsServerOptions> = {},
): Promise<NatsServer> {
  return startIn(cleanUp, options.directory, (directory) =>
    startNatsServer({ ...options, directory }),
  )
}

/** An empty folder, removed at the end. */
export async function temporaryFolder(cleanUp: CleanUp): Promise<string> {
  const folder = await makeFolder()
  cleanUp.after(() => removeFolder(folder))
  return folder
}

/** One hook for both, since hooks run in the order they came: the server ends, then its folder goes. */
async function startIn<T extends { stop(): Promise<void> }>(
  cleanUp: CleanUp,
  given: string | undefined,
  start: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = given ?? (await makeFolder())
  const server = await start(directory)
  cleanUp.after(async () => {
    await server.stop()
    if (given === undefined) await removeFolder(directory)
  })
  return server
}

function makeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'tenure-test-'))
}

function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true })
}
