/**
 * An abort signal that is made when somebody asks for it. A worker begins and ends thousands of grants in
 * a second, most of which nobody asks for a signal, and neither a signal nor the error that is its reason
 * is cheap to make.
 *
 * Asked for after it fired, it is aborted already. The first to fire gives the reason.
 */
import type { TenureError } from '../core/tenure-error.ts'

export class LateSignal {
  private controller: AbortController | null = null
  private reason: (() => TenureError) | null = null

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController()
      if (this.reason !== null) this.controller.abort(this.reason())
    }
    return this.controller.signal
  }

  fire(reason: () => TenureError): void {
    if (this.reason !== null) return
    this.reason = reason
    this.controller?.abort(reason())
  }
}
