/** What `tenure dev` says to a terminal: at most 20 lines, with what to try next. */
export function bannerLines(
  demo: { readonly url: string; readonly etcd: string; readonly nats: string },
  group: string,
  partitions: number,
): readonly string[] {
  const { url, etcd, nats } = demo
  return [
    '',
    `  Tenure is up: group "${group}", ${partitions} partitions, orders flowing into a fenced ledger.`,
    '',
    `  HTTP    ${url}/v1/groups/${group}`,
    `  etcd    ${etcd}`,
    `  NATS    ${nats}`,
    '  logs    .tenure/dev/logs',
    '',
    '  Who owns a key?',
    `    curl '${url}/v1/groups/${group}/owner?key=customer-17'`,
    '  Try next, in another terminal in this folder:',
    '    npx tenure status                    all at a glance',
    '    npx tenure worker --member w-4       scale out',
    '    npx tenure drain w-1                 empty a worker',
    '    npx tenure rebalance --dry-run       what would move',
    '    npx tenure watch                     every change as it happens',
    '',
    '  Ctrl-C stops everything.',
  ]
}
