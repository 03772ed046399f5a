/**
 * NATS subjects: tokens joined by dots. In a subscription `*` stands for one token and `>`, at the end,
 * for one or more.
 */
export function isPattern(subject: string): boolean {
  return subject.split('.').some((token) => token === '*' || token === '>')
}

export function subjectMatches(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.')
  const tokens = subject.split('.')
  for (const [index, token] of wanted.entries()) {
    if (token === '>') return tokens.length > index
    if (index >= tokens.length || (token !== '*' && token !== tokens[index])) return false
  }
  return wanted.length === tokens.length
}
