/** Processes of the run, each inside its node's network namespace. */
import { join } from 'node:path'
import { type ServerProcess, startServerProcess } from '../../src/dev/servers-process.ts'
import type { NodePlace } from './layout.ts'
import { within } from './network.ts'

export type Node = {
  readonly place: NodePlace
  readonly process: ServerProcess
  /** A fault has hold of it: no other takes it. */
  held: boolean
  /** The harness ended it: nobody else starts it again. */
  down: boolean
}

/** An end that the harness did not bring about. */
export type UnexpectedEnd = { readonly node: string; readonly code: number; readonly atMs: number }

export type Program = {
  readonly name: string
  readonly namespace: string
  readonly program: string
  readonly args: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
}

/** Starts it and does not wait until it works: under faults that may take long. */
export function startInside(folder: string, program: Program): Promise<ServerProcess> {
  const [entering = '', ...rest] = within(program.namespace)
  return startServerProcess({
    name: program.name,
    program: entering,
    args: [...rest, program.program, ...program.args],
    environment: { ...plainEnvironment(), ...program.environment },
    ports: [],
    logFile: join(folder, 'logs', `${program.name}.log`),
    isReady: async () => true,
  })
}

/** Without what the surroundings would set. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(TENURE|ETCD)_/.test(name))
  return { ...Object.fromEntries(kept), ETCD_UNSUPPORTED_ARCH: process.arch }
}

export function createNode(place: NodePlace, process: ServerProcess): Node {
  return { place, process, held: false, down: false }
}
