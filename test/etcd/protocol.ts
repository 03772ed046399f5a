/** etcd's own description of the protocol, as the client library ships it. */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { loadSync, type MethodDefinition } from '@grpc/proto-loader'

type Method = MethodDefinition<object, object>

const library = dirname(createRequire(import.meta.url).resolve('etcd3'))
const services = loadSync(join(library, '../proto/rpc.proto'), {
  ...{ keepCase: true, longs: String, enums: String, defaults: true, oneofs: true },
}) as unknown as {
  readonly 'etcdserverpb.KV': { readonly Txn: Method }
  readonly 'etcdserverpb.Watch': { readonly Watch: Method }
}

export const txn = services['etcdserverpb.KV'].Txn
export const watch = services['etcdserverpb.Watch'].Watch
