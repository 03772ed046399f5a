/**
 * The provider of the outbox example, in the test's own process: it delivers e-mails into an inbox, and may
 * know their idempotency keys or not. Requests come under `/<member>`, so that the answers to one member
 * can be withheld: the e-mail is delivered then, and its sender does not learn of it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CleanUp } from '../support/servers.ts'

export type Email = { readonly to: string; readonly text: string; readonly member: string }

export class EmailProvider {
  /** What customers got. */
  readonly inbox: Email[] = []
  /** Requests that carried a key which had been seen. */
  again = 0
  url = ''
  private readonly knowsKeys: boolean
  private readonly keys = new Set<string>()
  private withheld: { readonly member: string; readonly waiting: Email[] } | null = null
  private letGo = () => {}
  private held: Promise<void> = Promise.resolve()

  constructor(options: { readonly knowsKeys: boolean }) {
    this.knowsKeys = options.knowsKeys
  }

  async listen(cleanUp: CleanUp): Promise<void> {
    const server = createServer(async (request, response) => {
      await this.take(request)
      response.writeHead(202)
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    cleanUp.after(async () => {
      this.answer()
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    })
  }

  /** Answers to the member wait from now on; the e-mails that have none are in the list. */
  withholdAnswers(member: string): readonly Email[] {
    const waiting: Email[] = []
    this.withheld = { member, waiting }
    this.held = new Promise((resolve) => {
      this.letGo = resolve
    })
    return waiting
  }

  /** Gives the answers that wait. */
  answer(): void {
    this.withheld = null
    this.letGo()
  }

  private async take(request: IncomingMessage): Promise<void> {
    const member = (request.url ?? '').slice(1)
    const key = String(request.headers['idempotency-key'])
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { to, text } = JSON.parse(Buffer.concat(chunks).toString()) as Omit<Email, 'member'>
    const email = { to, text, member }
    if (this.keys.has(key)) this.again += 1
    if (!this.keys.has(key) || !this.knowsKeys) this.inbox.push(email)
    this.keys.add(key)
    if (this.withheld?.member !== member) return
    this.withheld.waiting.push(email)
    await this.held
  }
}
