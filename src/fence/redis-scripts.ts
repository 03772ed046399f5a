/**
 * The Lua sources of the Redis fence. Each is the rule of `core/fence.ts` inside one script, which Redis
 * runs with nothing in between, so check and effect are one atomic step.
 *
 *   KEYS[1]      the partition's fence: the sortable token that is sealed
 *   KEYS[2..]    keys of the effect
 *   ARGV[1]      the sortable token of who asks
 *   ARGV[2..]    arguments of the effect
 *   reply        a list: accepted | a text: 'stale <sealed>', 'unsealed <sealed>', 'unsealed', 'malformed'
 *
 * Mostly the token is the very one that is sealed, and one comparison of texts is all there is. Otherwise
 * positions are compared byte by byte: Lua's own `<` goes by the server's locale.
 */
import { createHash } from 'node:crypto'

export type RedisScript = { readonly source: string; readonly sha: string }

/** As a value: a key of another type must end as malformed, not in the server's words. */
const READ_FENCE = `
local held = redis.pcall('GET', KEYS[1])
`

/** How the asking token's position stands to the sealed one: `order` below, at or above nought. */
const COMPARE_FENCE = `
local order = 1
if type(held) == 'table' and not held.err:find('WRONGTYPE', 1, true) then return held end
if held then
  local hex = '[0-9a-f]+'
  if type(held) ~= 'string' or #held ~= 42 or held:sub(13, 13) ~= '.' or held:sub(26, 26) ~= '.'
    or not held:find('^' .. hex .. '%.' .. hex .. '%.' .. hex .. '$') then
    return 'malformed'
  end
  for at = 1, 25 do
    order = ARGV[1]:byte(at) - held:byte(at)
    if order ~= 0 then break end
  end
end
`

/** A seal above the sealed one raises it; of the sealed one itself it changes nothing. */
export const SEAL_SCRIPT = scriptOf(`${READ_FENCE}
if held ~= ARGV[1] then
${COMPARE_FENCE}
  if order <= 0 then return 'stale ' .. held end
  redis.call('SET', KEYS[1], ARGV[1])
end
return {}
`)

const CHECK_EFFECT = `${READ_FENCE}
if held ~= ARGV[1] then
${COMPARE_FENCE}
  if order <= 0 then return 'stale ' .. held end
  if held then return 'unsealed ' .. held end
  return 'unsealed'
end
`

/** ARGV[2..]: name and words of the one command that most effects are. Accepted: its reply, alone in a list. */
export const COMMAND_SCRIPT = scriptOf(`${CHECK_EFFECT}
return {redis.call(unpack(ARGV, 2))}
`)

/** ARGV[2..]: for each command the number of its words, then the words. Accepted: one reply per command. */
export const COMMANDS_SCRIPT = scriptOf(`${CHECK_EFFECT}
local replies, at, last = {}, 2, #ARGV
while at <= last do
  local to = at + ARGV[at]
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, to))
  at = to + 1
end
return replies
`)

/** The user's script as a function of its own KEYS and ARGV. Accepted: what it returns, alone in a list. */
export function guardedScript(source: string): RedisScript {
  return scriptOf(`${CHECK_EFFECT}
local effect_keys, effect_arguments = {}, {}
for index = 2, #KEYS do effect_keys[index - 1] = KEYS[index] end
for index = 2, #ARGV do effect_arguments[index - 1] = ARGV[index] end
local function effect(KEYS, ARGV)
${source}
end
local value = effect(effect_keys, effect_arguments)
if value == nil then value = false end
if type(value) == 'table' and value.err then return value end
return {value}
`)
}

function scriptOf(source: string): RedisScript {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}
