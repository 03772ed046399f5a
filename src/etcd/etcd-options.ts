/**
 * Where etcd is and how to prove who we are: the options of the store, checked and turned into what
 * the client library wants. Certificate files are read here, once, when the store is made.
 */
import { readFileSync } from 'node:fs'
import { createTenureError } from '../core/tenure-error.ts'

export type EtcdStoreOptions = {
  /** `http://host:port`, `https://host:port` or `host:port`; all secure or none. At least one. */
  readonly endpoints: readonly string[]
  /** PEM files. Without `caFile` the system's authorities count; cert and key come together. */
  readonly tls?: {
    readonly caFile?: string | undefined
    readonly certFile?: string | undefined
    readonly keyFile?: string | undefined
  }
  /** Name and password come together. */
  readonly username?: string
  readonly password?: string
}

/** What one connection needs, apart from the endpoint. */
export type Identity = {
  readonly credentials?: {
    readonly rootCertificate: Buffer
    readonly privateKey?: Buffer
    readonly certChain?: Buffer
  }
  readonly auth?: { readonly username: string; readonly password: string }
}

/** @throws TenureError `invalid-config`: no endpoint, a malformed or mixed one, an unreadable file. */
export function readEndpoints(options: EtcdStoreOptions): readonly string[] {
  const endpoints = options.endpoints.map(normalEndpoint)
  if (endpoints.length === 0) throw invalid('etcd endpoints: at least one is needed')
  const secure = endpoints.filter((endpoint) => endpoint.startsWith('https:')).length
  if (secure !== 0 && secure !== endpoints.length) {
    throw invalid('etcd endpoints: either all are https or none is')
  }
  if (options.tls === undefined || secure > 0) return endpoints
  if (options.endpoints.some((endpoint) => endpoint.startsWith('http:'))) {
    throw invalid('etcd endpoints: TLS files are given but an endpoint says http')
  }
  return endpoints.map((endpoint) => endpoint.replace(/^http:/, 'https:'))
}

/** @throws TenureError `invalid-config`: see {@link readEndpoints}. */
export function readIdentity(options: EtcdStoreOptions): Identity {
  const { tls, username, password } = options
  if ((username === undefined) !== (password === undefined)) {
    throw invalid('etcd credentials: user name and password come together')
  }
  if ((tls?.certFile === undefined) !== (tls?.keyFile === undefined)) {
    throw invalid('etcd TLS: certificate and key come together')
  }
  const rootCertificate = tls?.caFile === undefined ? undefined : readPem(tls.caFile)
  const certChain = tls?.certFile === undefined ? undefined : readPem(tls.certFile)
  const privateKey = tls?.keyFile === undefined ? undefined : readPem(tls.keyFile)
  if (certChain !== undefined && rootCertificate === undefined) {
    throw invalid('etcd TLS: a client certificate needs the authority (caFile) as well')
  }
  return {
    ...(rootCertificate === undefined
      ? {}
      : {
          credentials: {
            rootCertificate,
            ...(privateKey === undefined ? {} : { privateKey }),
            ...(certChain === undefined ? {} : { certChain }),
          },
        }),
    ...(username === undefined || password === undefined ? {} : { auth: { username, password } }),
  }
}

function normalEndpoint(text: string): string {
  const withScheme = /^[a-z]+:\/\//.test(text) ? text : `http://${text}`
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null
  const known = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (
    url === null ||
    !known ||
    url.hostname === '' ||
    url.pathname !== '/' ||
    url.username !== ''
  ) {
    throw invalid(`etcd endpoint "${text}" is not http://host:port or https://host:port`)
  }
  // An explicit port keeps the client library from guessing 443 for both schemes.
  const port = url.port !== '' ? url.port : url.protocol === 'https:' ? '443' : '80'
  return `${url.protocol}//${url.hostname}:${/:\d+$/.test(withScheme) ? port : '2379'}`
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw createTenureError('invalid-config', `etcd TLS: cannot read ${path}`, { cause: error })
  }
}

function invalid(message: string): Error {
  return createTenureError('invalid-config', message)
}
