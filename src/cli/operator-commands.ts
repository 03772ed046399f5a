/**
 * Operators' verbs: each asks a `serve` process over HTTP.
 */
import { type Command, Option } from 'commander'
import type { Act } from './act.ts'
import {
  cancelRebalance,
  clearMark,
  cordonOf,
  disablingOf,
  drainMember,
  evictMember,
  FREEZE,
  freezeGroup,
  movePartition,
  raiseIncarnation,
  rebalance,
  setMark,
  undrainMember,
} from './change-commands.ts'
import type { CliContext } from './context.ts'
import { beginCall, type OperatorCall } from './operator-call.ts'
import { parseCount, parseDuration } from './option-values.ts'
import {
  showIncarnation,
  showMembers,
  showOwner,
  showPartitions,
  showRebalances,
  showStatus,
} from './read-commands.ts'
import { addSettingFlags } from './setting-flags.ts'
import { describeDuration } from './setting-kinds.ts'
import { watchGroup } from './watch-command.ts'

const WAIT_MS = 120_000

type Verb = (call: OperatorCall, ...words: string[]) => Promise<number>

/** Declares one verb: `usage` as commander reads it, flags common to all verbs added. */
type Declare = (usage: string, description: string, verb: Verb, parent?: Command) => Command

export function addOperatorCommands(program: Command, context: CliContext, act: Act): void {
  const declare: Declare = (usage, description, verb, parent = program) =>
    addSettingFlags(parent.command(usage).description(description), ['scope', 'access']).action(
      act(async (command, ...words) =>
        verb(await beginCall(command, context), ...(words as string[])),
      ),
    )
  program.commandsGroup('Look:')
  addReads(declare)
  program.commandsGroup('Change:')
  addMoves(declare)
  addMarks(declare)
}

function addReads(declare: Declare): void {
  declare('status', 'state of the groups', showStatus)
  declare('partitions [partition]', 'partitions and their owners, or one in full', showPartitions)
    .option('--owner <member>', 'only those of this member')
    .option('--state <phase>', 'only vacant, owned, revoking or halted ones')
    .option('--moving', 'only those with a pending move')
    .option('--limit <number>', 'at most that many', parseCount(1))
  declare('members', 'members and what they own', showMembers)
  declare('owner <key>', "owner of a key's partition", showOwner)
  declare('watch', 'changes as they happen, until Ctrl-C', watchGroup)
    .option('--count <number>', 'end after that many changes', parseCount(1))
    .option('--after <version>', 'go on from this version of the map')
  declare('rebalances [id]', 'rebalances kept, or one of them', showRebalances)
}

function addMoves(declare: Declare): void {
  const balance = withWait(
    declare('rebalance', 'balance the group now', rebalance)
      .option('--dry-run', 'show what would move, change nothing')
      .option('--id <id>', 'idempotency key: the same one twice makes one rebalance'),
  )
  declare('cancel <id>', 'end a rebalance that still runs', cancelRebalance, balance)
  withWait(declare('move <partition> <member>', 'move one partition to a member', movePartition))
  withWait(declare('drain <member>', "move all of a member's partitions elsewhere", drainMember))
  declare('undrain <member>', 'end its drains and lift its cordon', undrainMember)
}

function addMarks(declare: Declare): void {
  withReason(
    declare('cordon <member>', 'give this member name nothing more', (call, member = '') =>
      setMark(call, cordonOf(member)),
    ),
  )
  declare('uncordon <member>', 'the opposite', (call, member = '') =>
    clearMark(call, cordonOf(member)),
  )
  withReason(
    declare('freeze', "no planned moves; elections and operators' own moves go on", freezeGroup),
  ).option('--for <time>', 'remind operators that it was meant to last that long', parseDuration)
  declare('unfreeze', 'the opposite', (call) => clearMark(call, FREEZE))
  withReason(
    declare('disable', 'no owner at all, for the group or one partition', (call) =>
      setMark(call, disablingOf(call)),
    ),
  ).option('--partition <number>', 'only this partition')
  declare('enable', 'the opposite', (call) => clearMark(call, disablingOf(call))).option(
    '--partition <number>',
    'only this partition',
  )
  withReason(
    declare('evict <member>', 'end its session without a drain: it loses everything', evictMember),
  )
  const incarnation = declare('incarnation', "number of the group's history", showIncarnation)
  withReason(
    declare(
      'raise',
      'after a restore of etcd: grant everything anew',
      raiseIncarnation,
      incarnation,
    ),
  )
}

function withReason(command: Command): Command {
  return command.option('--reason <text>', 'kept with the change')
}

function withWait(command: Command): Command {
  return withReason(command)
    .option('--wait', 'until it has ended')
    .addOption(
      new Option('--timeout <time>', 'longest --wait')
        .argParser(parseDuration)
        .default(WAIT_MS, describeDuration(WAIT_MS)),
    )
}
