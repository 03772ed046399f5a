/** A promise that a reachable state or step of the model breaks. */
export class Broken extends Error {
  readonly promise: string

  constructor(promise: string, detail: string) {
    super(`${promise}: ${detail}`)
    this.promise = promise
  }
}
