/**
 * What an operator's command works with: the server, the group, the output. Made once per command.
 */
import type { Command } from 'commander'
import { type ApiClient, createApiClient } from './api-client.ts'
import { CliError, usageError } from './cli-error.ts'
import type { CliContext } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { loadConfiguration } from './load-configuration.ts'
import { createOutput, type Output, type OutputFlags } from './output.ts'
import type { GroupsReply } from './replies.ts'

export type OperatorCall = {
  readonly context: CliContext
  readonly api: ApiClient
  readonly output: Output
  /** Groups that the configuration names; possibly none. */
  readonly groups: readonly string[]
  /** Options of the command itself, by commander's names. */
  readonly options: Readonly<Record<string, unknown>>
}

/** @throws CliError `invalid-config`. */
export async function beginCall(command: Command, context: CliContext): Promise<OperatorCall> {
  const { config } = loadConfiguration(command, context)
  const options: Readonly<Record<string, unknown>> = command.optsWithGlobals()
  return {
    context,
    api: createApiClient({ url: config.url, token: config.http.token }, context),
    output: await createOutput(context, options as OutputFlags),
    groups: config.groups,
    options,
  }
}

/**
 * The one group that the command is about: the configured one, or the only one that the server has.
 * @throws CliError `usage` when that is not one.
 */
export async function theGroup(call: OperatorCall): Promise<string> {
  const [configured, ...more] = call.groups
  if (more.length > 0) {
    throw usageError(
      `this command is about one group, the configuration names ${call.groups.join(', ')}: choose one with --group`,
    )
  }
  if (configured !== undefined) return configured
  const { groups } = await call.api.get<GroupsReply>('/v1/groups')
  const [only, ...others] = groups
  if (only === undefined) {
    throw new CliError(
      'unknown-group',
      EXIT.notFound,
      `${call.api.url} has no group yet: start a worker, or name the group with --group`,
    )
  }
  if (others.length === 0) return only.group
  const names = groups.map(({ group }) => group).join(', ')
  throw usageError(`${call.api.url} has the groups ${names}: choose one with --group`)
}

/** `/v1/groups/orders` and below. */
export function groupPath(group: string, ...segments: readonly string[]): string {
  return ['/v1/groups', group, ...segments]
    .map((each, index) => (index === 0 ? each : encodeURIComponent(each)))
    .join('/')
}
