import { broadcastContract } from './broadcast-contract.ts'
import { natsBroadcastWorld } from './real-worlds.ts'
import { memoryBroadcastWorld } from './world.ts'

broadcastContract('in memory', memoryBroadcastWorld)
broadcastContract('NATS', natsBroadcastWorld)
