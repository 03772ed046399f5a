/** A promise with its resolvers beside it. A rejection nobody waits for is not an error. */
export type Deferred<T> = {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = nothing
  let reject: (error: unknown) => void = nothing
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  promise.catch(nothing)
  return { promise, resolve, reject }
}

function nothing(): void {}
