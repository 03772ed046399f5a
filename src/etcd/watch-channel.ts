/**
 * A gRPC channel of its own for watches, which the client library's stub cannot give: there, every
 * response goes through its general decoder (`watch-wire.ts` says what that costs). What the stub does
 * beside that is done here: the endpoint's address, TLS, and the token of a name and a password.
 *
 * The token is fetched once per channel. When it has expired the server refuses the next watch, whose
 * owner gives the connection up (`watch.ts`); the next one fetches another.
 */
import {
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
} from '@grpc/grpc-js'
import type { Identity } from './etcd-options.ts'
import {
  readWatchResponse,
  type WatchRequest,
  type WatchResponse,
  writeWatchRequest,
} from './watch-wire.ts'

export type WatchStream = ClientDuplexStream<WatchRequest, WatchResponse>

const METHOD = '/etcdserverpb.Watch/Watch'

export class WatchChannel {
  private readonly client: Client
  private readonly fetchToken: (() => Promise<string>) | null
  private token: Promise<string> | null = null

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

  /** A member that is cut off from its leader ends the stream instead of staying silent. */
  async open(): Promise<WatchStream> {
    const metadata = new Metadata()
    metadata.set('hasleader', 'true')
    if (this.fetchToken !== null) {
      this.token ??= this.fetchToken()
      metadata.set('token', await this.token)
    }
    return this.client.makeBidiStreamRequest(METHOD, writeWatchRequest, readWatchResponse, metadata)
  }

  close(): void {
    this.client.close()
  }
}
