/** What an operator does to etcd, done to a test's own server through its JSON gateway. */

/** Forgets the history before the revision, at once. */
export async function compact(endpoint: string, revision: number): Promise<void> {
  await call(endpoint, 'kv/compaction', { revision, physical: true })
}

/** Raises or clears the alarm that refuses writes. */
export async function setNoSpaceAlarm(endpoint: string, raised: boolean): Promise<void> {
  const alarm = 'NOSPACE'
  await call(endpoint, 'maintenance/alarm', { action: raised ? 'ACTIVATE' : 'DEACTIVATE', alarm })
}

/** From now on only root, with this password, may do anything. */
export async function requirePassword(endpoint: string, password: string): Promise<void> {
  await call(endpoint, 'auth/user/add', { name: 'root', password })
  await call(endpoint, 'auth/role/add', { name: 'root' })
  await call(endpoint, 'auth/user/grant', { user: 'root', role: 'root' })
  await call(endpoint, 'auth/enable', {})
}

async function call(endpoint: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${endpoint}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
}
