/** Files of one JSON value per line, as evidence is kept. */

export { isObject } from '../core/record-format.ts'

export type JsonLine = {
  /** Null when the line is no JSON. */
  readonly value: unknown
  /** From 1 on. */
  readonly line: number
  /** The file ends here, and not with a line feed: the line may be torn. */
  readonly isLast: boolean
}

export function jsonLines(text: string): readonly JsonLine[] {
  const lines = text.split('\n')
  return lines.flatMap((each, index): JsonLine[] => {
    if (each.trim() === '') return []
    return [{ value: parsed(each), line: index + 1, isLast: index === lines.length - 1 }]
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
