/**
 * The Lua sources of the Redis fence. Each is the rule of `core/fence.ts` inside one script, which Redis
 * runs with nothing in between, so check and effect are one atomic step.
 *
 *   KEYS[1]      the partition's fence: a hash of v, incarnation, generation, session
 *   KEYS[2..]    keys of the effect
 *   ARGV[1..3]   incarnation, generation, session of the token
 *   ARGV[4..]    arguments of the effect
 *   reply        {'ok', value} | {'stale' | 'unsealed', incarnation, generation, session} | {'malformed'}
 *
 * Numbers are compared as numbers: they lie far below 2^53, up to which Lua's are exact.
 */
import { createHash } from 'node:crypto'

export type RedisScript = { readonly source: string; readonly sha: string }

const READ_FENCE = `
local held = redis.call('HMGET', KEYS[1], 'v', 'incarnation', 'generation', 'session')
`

/** How the token stands to what is held: `absent`, `order` above or below nought, `same`. */
const COMPARE_FENCE = `
local incarnation, generation = tonumber(ARGV[1]), tonumber(ARGV[2])
local highest_incarnation, highest_generation = tonumber(held[2] or ''), tonumber(held[3] or '')
local absent = redis.call('EXISTS', KEYS[1]) == 0
if not absent and (held[1] ~= '1' or not highest_incarnation or not highest_generation or not held[4]) then
  return {'malformed'}
end
local order = 1
if not absent then
  order = incarnation - highest_incarnation
  if order == 0 then order = generation - highest_generation end
end
local same = order == 0 and held[4] == ARGV[3]
`

/** A seal above the highest raises it; of the highest itself it changes nothing. */
export const SEAL_SCRIPT = scriptOf(`${READ_FENCE}${COMPARE_FENCE}
if order < 0 or (order == 0 and not same) then return {'stale', held[2], held[3], held[4]} end
if order > 0 then
  redis.call('HSET', KEYS[1], 'v', '1', 'incarnation', ARGV[1], 'generation', ARGV[2], 'session', ARGV[3])
end
return {'ok', false}
`)

/** Mostly the token is the very one that is held, and nothing of it needs to be read as a number. */
const CHECK_EFFECT = `${READ_FENCE}
if held[1] ~= '1' or held[2] ~= ARGV[1] or held[3] ~= ARGV[2] or held[4] ~= ARGV[3] then
${COMPARE_FENCE}
  if absent then return {'unsealed'} end
  if order > 0 then return {'unsealed', held[2], held[3], held[4]} end
  if not same then return {'stale', held[2], held[3], held[4]} end
end
`

/** ARGV[4..]: for each command the number of its words, then the words. Value: one reply per command. */
export const COMMANDS_SCRIPT = scriptOf(`${CHECK_EFFECT}
local replies, at = {}, 4
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return {'ok', replies}
`)

/** The user's script as a function of its own KEYS and ARGV. Value: what it returns. */
export function guardedScript(source: string): RedisScript {
  return scriptOf(`${CHECK_EFFECT}
local effect_keys, effect_arguments = {}, {}
for index = 2, #KEYS do effect_keys[index - 1] = KEYS[index] end
for index = 4, #ARGV do effect_arguments[index - 3] = ARGV[index] end
local function effect(KEYS, ARGV)
${source}
end
local value = effect(effect_keys, effect_arguments)
if value == nil then value = false end
if type(value) == 'table' and value.err then return value end
return {'ok', value}
`)
}

function scriptOf(source: string): RedisScript {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}
