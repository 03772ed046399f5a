/**
 * A gRPC channel of its own for what a member does all the time, transactions and watches, which go past
 * the client library's stub: there, every message goes through a general encoder or decoder that builds an
 * object for every field (`wire-reader.ts` says what that costs). What the stub does beside that is done
 * here: the endpoint's address, TLS, and the token of a name and a password.
 *
 * The token is fetched once per channel. When it has expired the server refuses the next call, whose
 * sender gives the connection up (`unary.ts`, `watch.ts`); the next one fetches another.
 */
import {
  type CallOptions,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
} from '@grpc/grpc-js'
import type { Transaction } from '../core/transaction.ts'
import type { Identity } from './etcd-options.ts'
import {
  readTransactionReply,
  type TransactionReply,
  writeTransaction,
} from './transaction-wire.ts'
import {
  readWatchResponse,
  type WatchRequest,
  type WatchResponse,
  writeWatchRequest,
} from './watch-wire.ts'

export type WatchStream = ClientDuplexStream<WatchRequest, WatchResponse>

const WATCH = '/etcdserverpb.Watch/Watch'
const TRANSACT = '/etcdserverpb.KV/Txn'

export class EtcdChannel {
  private readonly client: Client
  private readonly fetchToken: (() => Promise<string>) | null
  private metadata: Promise<Metadata> | null = null

  /** @param fetchToken null: the server asks for none */
  constructor(options: {
    readonly endpoint: string
    readonly identity: Identity
    readonly channelOptions: ChannelOptions
    readonly fetchToken: (() => Promise<string>) | null
  }) {
    const { endpoint, identity, channelOptions, fetchToken } = options
    const { rootCertificate, privateKey, certChain } = identity.credentials ?? {}
    const secure = endpoint.startsWith('https://')
    this.client = new Client(
      endpoint.replace(/^https?:\/\//, ''),
      secure
        ? credentials.createSsl(rootCertificate, privateKey, certChain)
        : credentials.createInsecure(),
      channelOptions,
    )
    this.fetchToken = fetchToken
  }

  async openWatch(): Promise<WatchStream> {
    const metadata = await this.credentialsOfCalls()
    return this.client.makeBidiStreamRequest(WATCH, writeWatchRequest, readWatchResponse, metadata)
  }

  /** Rejects with the call's gRPC status as `code`. */
  async transact(transaction: Transaction, options: CallOptions): Promise<TransactionReply> {
    const metadata = await this.credentialsOfCalls()
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(
        TRANSACT,
        writeTransaction,
        (bytes) => readTransactionReply(bytes, transaction),
        transaction,
        metadata,
        options,
        (error, reply) => {
          if (reply === undefined) reject(error)
          else resolve(reply)
        },
      )
    })
  }

  close(): void {
    this.client.close()
  }

  /**
   * Of every call: its token, and that a member cut off from its leader must turn it down at once, or end the
   * stream, instead of staying silent.
   */
  private credentialsOfCalls(): Promise<Metadata> {
    if (this.metadata === null) {
      const metadata = this.makeMetadata()
      this.metadata = metadata
      // A password that was wrong, or a server that was away, may be right or back at the next call.
      metadata.catch(() => {
        if (this.metadata === metadata) this.metadata = null
      })
    }
    return this.metadata
  }

  private async makeMetadata(): Promise<Metadata> {
    const metadata = new Metadata()
    metadata.set('hasleader', 'true')
    if (this.fetchToken !== null) metadata.set('token', await this.fetchToken())
    return metadata
  }
}
