/** A fence that is asked first, by itself, and an effect that runs afterwards: what a hurried author writes. */
import type { Token } from '../../src/core/token.ts'
import type { Fence } from '../../src/fence/fence.ts'

export function checkedOutside<Nothing, Effect>(
  fence: Fence<Nothing, unknown>,
  nothing: Nothing,
  run: (token: Token, effect: Effect) => Promise<void>,
): Fence<Effect, void> {
  return {
    seal: fence.seal,
    async guard(token, effect) {
      const checked = await fence.guard(token, nothing)
      if (!checked.ok) return checked
      await run(token, effect)
      return { ok: true, value: undefined }
    },
  }
}

/** The text with one part of it replaced. @throws Error when it is not there: nothing would be broken. */
export function mutated(text: string, part: string, by: string): string {
  if (!text.includes(part)) throw new Error(`nothing to break: no "${part}"`)
  return text.replaceAll(part, by)
}
