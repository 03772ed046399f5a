/** Things kept once each and named by small numbers, 0 standing for "nothing". */
export class Table<Value> {
  private readonly ids = new Map<string, number>()
  private readonly values: (Value | null)[] = [null]

  /** The number of the thing with this key; `make` is called for a key that is new. */
  id(key: string, make: () => Value): number {
    const known = this.ids.get(key)
    if (known !== undefined) return known
    const id = this.values.length
    this.ids.set(key, id)
    this.values.push(make())
    return id
  }

  of(id: number): Value {
    const value = this.values[id]
    if (value === null || value === undefined) throw new Error(`nothing is numbered ${id}`)
    return value
  }

  find(id: number): Value | null {
    return this.values[id] ?? null
  }

  get size(): number {
    return this.values.length - 1
  }
}

/** What a number, or a pair of them, leads to, worked out once. */
export class Memory<Value> {
  private readonly known = new Map<number, Value>()

  of(key: number, make: () => Value): Value {
    let value = this.known.get(key)
    if (value === undefined) {
      value = make()
      this.known.set(key, value)
    }
    return value
  }
}

/** Two numbers as one; the second below 2^21. */
export function pair(a: number, b: number): number {
  return a * 2 ** 21 + b
}
