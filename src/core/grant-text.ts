/**
 * The text of an owned record: what `JSON.stringify` would write of it, in a sixth of the time. Each grant
 * is written once, and read again from columns by whoever asks for its text (`plain-grant.ts`).
 */
type Named = { readonly member: string; readonly session: string }

/** Nothing in it that JSON escapes. */
const PLAIN = /^[A-Za-z0-9_-]*$/

export function grantText(grant: {
  readonly incarnation: number
  readonly generation: number
  readonly owner: Named
  readonly how: string
  readonly previous: (Named & { readonly incarnation: number; readonly generation: number }) | null
  readonly operation: string
  readonly atMs: number
}): string {
  const { incarnation, generation, owner, how, previous, operation, atMs } = grant
  const before =
    previous === null
      ? 'null'
      : `{${names(previous)},"incarnation":${previous.incarnation},"generation":${previous.generation}}`
  return (
    `{"v":1,"phase":"owned","incarnation":${incarnation},"generation":${generation},` +
    `"owner":{${names(owner)}},"how":"${how}","previous":${before},` +
    `"operation":${quoted(operation)},"atMs":${atMs}}`
  )
}

function names({ member, session }: Named): string {
  return `"member":${quoted(member)},"session":${quoted(session)}`
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
