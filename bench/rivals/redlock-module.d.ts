/** The part of redlock 4 that its member uses; the package brings no types. */
declare module 'redlock' {
  export type Answer = (error: Error | null, value?: unknown) => void

  export type RedisLike = {
    evalsha(hash: string, words: readonly (string | number)[], answer: Answer): void
    eval(words: readonly (string | number)[], answer: Answer): void
  }

  export type Lock = { extend(ttlMs: number): Promise<Lock> }

  export default class Redlock {
    constructor(
      clients: readonly RedisLike[],
      options: {
        readonly driftFactor: number
        readonly retryCount: number
        readonly retryDelay: number
        readonly retryJitter: number
      },
    )
    /** A count of -1: for ever. */
    lockWithOptions(
      resource: string,
      ttlMs: number,
      options: { readonly retryCount: number },
    ): Promise<Lock>
  }
}
