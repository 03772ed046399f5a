import { etcdStoreWorld } from './real-worlds.ts'
import { storeContract } from './store-contract.ts'
import { memoryStoreWorld } from './world.ts'

storeContract('in memory', memoryStoreWorld)
storeContract('etcd', etcdStoreWorld)
