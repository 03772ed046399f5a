/**
 * etcd orders keys by their UTF-8 bytes. JavaScript compares UTF-16 units, which differs only where
 * surrogates meet the units above them; lifting surrogates over those gives the order of the bytes.
 */
export function compareKeys(one: string, other: string): number {
  const shared = Math.min(one.length, other.length)
  for (let index = 0; index < shared; index += 1) {
    const a = one.charCodeAt(index)
    const b = other.charCodeAt(index)
    if (a !== b) return rank(a) - rank(b)
  }
  return one.length - other.length
}

/** Index of the first key that is not below `key`, in keys sorted by {@link compareKeys}. */
export function lowerBound(keys: readonly string[], key: string): number {
  let from = 0
  let to = keys.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (compareKeys(keys[middle] as string, key) < 0) from = middle + 1
    else to = middle
  }
  return from
}

function rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800
  return unit >= 0xd800 ? unit + 0x2000 : unit
}
