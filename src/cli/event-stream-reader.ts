/**
 * Reads server-sent events out of text that arrives in pieces cut anywhere.
 */
export type ServerEvent = {
  readonly event: string
  /** Empty when the event carries none. */
  readonly id: string
  readonly data: string
}

export type EventReader = {
  /** The events that this piece completes. */
  push(text: string): readonly ServerEvent[]
}

export function createEventReader(): EventReader {
  let rest = ''
  let lines: string[] = []
  return {
    push(text) {
      const events: ServerEvent[] = []
      const pieces = (rest + text).split(/\r?\n/)
      rest = pieces.pop() ?? ''
      for (const line of pieces) {
        if (line !== '') {
          lines.push(line)
          continue
        }
        const event = eventOf(lines)
        if (event !== null) events.push(event)
        lines = []
      }
      return events
    },
  }
}

/** Null for what is only a comment or a `retry`. */
function eventOf(lines: readonly string[]): ServerEvent | null {
  let event = 'message'
  let id = ''
  const data: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'data') data.push(value)
  }
  return data.length === 0 ? null : { event, id, data: data.join('\n') }
}
