/**
 * Breadth-first search to the end of one configuration: each reachable state once (by hash compaction),
 * its moves, its checks. Per state are kept the parent and which of its moves led here, so that the shortest
 * trace to a violation is replayed move by move; rows are kept for the layer at hand and the next alone.
 */
import { Broken } from './broken.ts'
import { checkMoment } from './checks.ts'
import { isGood } from './good.ts'
import { Growing } from './growing.ts'
import { findStuck } from './liveness.ts'
import { Model } from './model.ts'
import { allMoves } from './moves.ts'
import { servedRow } from './served.ts'
import type { Settings } from './settings.ts'
import { Visited } from './visited.ts'

export type Found = {
  readonly states: number
  readonly transitions: number
  readonly depth: number
  readonly seconds: number
  /** States that hash compaction is expected to have left out. */
  readonly expectedOmissions: number
  readonly violation: Violation | null
}

export type Violation = {
  readonly promise: string
  readonly detail: string
  readonly trace: readonly string[]
}

export type SearchOptions = {
  /** Also look for states from which no healing leads on. */
  readonly liveness: boolean
  /** Called now and then. */
  readonly progress?: (states: number, depth: number) => void
  /** A guard against configurations that are too large; 0: none. */
  readonly statesMax?: number
}

export function search(settings: Settings, options: SearchOptions): Found {
  return new Search(settings, options).run()
}

class Search {
  private readonly model: Model
  private readonly options: SearchOptions
  private start: Int32Array
  private readonly visited = new Visited()
  private readonly parents = new Growing()
  /** Which move of the parent led here. */
  private readonly choices = new Growing()
  private readonly good = new Growing()
  /** Pairs of states, from and to: the moves that heal. */
  private readonly healing = new Growing()
  private layer = new Growing()
  private transitions = 0

  constructor(settings: Settings, options: SearchOptions) {
    this.model = new Model(settings)
    this.options = options
    this.start = this.model.startRow()
  }

  run(): Found {
    const beganAtMs = performance.now()
    let depth = 0
    let violation: Violation | null = null
    try {
      this.begin()
      for (; this.layer.length > 0; depth += 1) this.expandLayer(depth)
      if (this.options.liveness) violation = this.stuck()
    } catch (error: unknown) {
      if (!(error instanceof Violated)) throw error
      violation = error.violation
    }
    return {
      states: this.visited.size,
      transitions: this.transitions,
      depth,
      seconds: (performance.now() - beganAtMs) / 1000,
      expectedOmissions: this.visited.expectedOmissions(),
      violation,
    }
  }

  private begin(): void {
    const { model } = this
    try {
      if (model.settings.start === 'served') this.start = servedRow(model)
    } catch (error: unknown) {
      if (!(error instanceof Broken)) throw error
      const trace = ['on the way to the first owner', model.label()]
      throw new Violated({ promise: error.promise, detail: error.message, trace })
    }
    this.visited.add(this.start)
    this.parents.push(-1)
    this.choices.push(0)
    this.layer.append(this.start)
  }

  private expandLayer(depth: number): void {
    const { width } = this.model.layout
    const layer = this.layer
    const count = layer.length / width
    const first = this.visited.size - count
    this.layer = new Growing()
    for (let at = 0; at < count; at += 1) {
      this.expand(layer.slice(at * width, (at + 1) * width), first + at)
      if ((at & 0xffff) === 0) this.options.progress?.(this.visited.size, depth)
    }
    const { statesMax = 0 } = this.options
    if (statesMax > 0 && this.visited.size > statesMax) {
      throw new Error(`more than ${statesMax} states at depth ${depth}`)
    }
  }

  private expand(row: Int32Array, state: number): void {
    const { model } = this
    let choice = 0
    try {
      model.label = () => 'a look at this moment'
      checkMoment(model, row)
      if (this.options.liveness && isGood(model, row)) this.good.push(state)
      model.look(row, (next, heals) => {
        this.transitions += 1
        this.reach(next, state, choice, heals)
        choice += 1
      })
      allMoves(model)
    } catch (error: unknown) {
      if (!(error instanceof Broken)) throw error
      const last = model.label()
      throw new Violated({
        promise: error.promise,
        detail: error.message,
        trace: [...this.trace(state), last],
      })
    }
  }

  private reach(row: Int32Array, from: number, choice: number, heals: boolean): void {
    const known = this.visited.size
    const state = this.visited.add(row)
    if (state === known) {
      this.parents.push(from)
      this.choices.push(choice)
      this.layer.append(row)
    }
    if (heals && this.options.liveness && state !== from) {
      this.healing.push(from)
      this.healing.push(state)
    }
  }

  private stuck(): Violation | null {
    const stuck = findStuck(this.visited.size, this.good, this.healing)
    if (stuck.count === 0) return null
    return {
      promise: 'stuck',
      detail: `stuck: from ${stuck.count} states no healing leads to an owner that serves`,
      trace: this.trace(stuck.first),
    }
  }

  /** The moves from the start to this state, replayed. */
  private trace(state: number): readonly string[] {
    const choices: number[] = []
    for (let at = state; at > 0; at = this.parents.at(at)) choices.unshift(this.choices.at(at))
    const labels: string[] = []
    let row = this.start
    for (const wanted of choices) {
      const step = replay(this.model, row, wanted)
      labels.push(step.label)
      row = step.row
    }
    return labels
  }
}

class Violated extends Error {
  readonly violation: Violation

  constructor(violation: Violation) {
    super(violation.detail)
    this.violation = violation
  }
}

function replay(model: Model, from: Int32Array, wanted: number) {
  let choice = 0
  let label = ''
  const row = new Int32Array(from.length)
  model.look(from, (next, _, words) => {
    if (choice === wanted) {
      row.set(next)
      label = words()
    }
    choice += 1
  })
  try {
    allMoves(model)
  } catch (error: unknown) {
    // A later move of the same state may be the one that breaks a promise.
    if (!(error instanceof Broken)) throw error
  }
  return { row, label }
}
