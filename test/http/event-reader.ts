/** Reads an event stream from a real socket, as a browser's EventSource would. */
import { type ClientRequest, get } from 'node:http'

export type StreamEvent = {
  readonly event: string
  readonly id: string | null
  readonly data: { readonly version: string; readonly partitions?: { partition: number }[] }
}

export type EventReader = {
  readonly events: StreamEvent[]
  readonly comments: string[]
  status: number
  ended: boolean
  readonly request: ClientRequest
}

export function readEvents(url: string, lastEventId?: string): EventReader {
  const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const request = get(url, { headers }, (response) => {
    reader.status = response.statusCode ?? 0
    response.setEncoding('utf8')
    let text = ''
    response.on('data', (chunk: string) => {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) readBlock(reader, block)
    })
    response.on('close', () => {
      reader.ended = true
    })
  })
  request.on('error', () => {
    reader.ended = true
  })
  const reader: EventReader = { events: [], comments: [], status: 0, ended: false, request }
  return reader
}

function readBlock(reader: EventReader, block: string): void {
  if (block.startsWith(':')) {
    reader.comments.push(block)
    return
  }
  const field = (name: string) => block.match(new RegExp(`^${name}: (.*)$`, 'm'))?.[1] ?? null
  const event = field('event')
  if (event === null) return
  reader.events.push({ event, id: field('id'), data: JSON.parse(field('data') ?? 'null') })
}
