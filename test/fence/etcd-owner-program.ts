/** An owner of the conformance suite as a process of its own: endpoint of etcd. */
import { noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import { createEtcdFence } from '../../src/fence/etcd.ts'
import { serveFenceOwner } from '../../src/testing/index.ts'
import { entryOf } from './list-entries.ts'

const etcd = new Etcd3({
  hosts: process.argv[2] ?? '',
  faultHandling: { global: noop, host: () => noop },
})
const fence = createEtcdFence(etcd, { group: 'conformance' })
void serveFenceOwner({
  fence,
  // One key per effect: etcd's own create revision gives their order.
  effectOf: (token, number) => ({
    success: [
      {
        request_put: {
          key: Buffer.from(`/effects/${token.partition}/${number}`),
          value: Buffer.from(entryOf(token, number)),
        },
      },
    ],
  }),
  close: async () => etcd.close(),
})
