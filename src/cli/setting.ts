/**
 * What one setting is: where it may be written, which values it takes, what it falls back to. The list
 * itself is `settings.ts`; parsing, flags, the environment, the file and the README's table all read it.
 */
import type { SettingKind, SettingValue } from './setting-kinds.ts'

/** Which commands take a setting as a flag. The file and the environment may hold any of them. */
export type SettingSection =
  /** etcd, NATS and the key prefix: whoever connects by itself. */
  | 'connection'
  /** Name, address, weight: a worker. */
  | 'member'
  /** The listener of `serve`. */
  | 'listener'
  /** The small listener of a worker, for health checks and metrics. */
  | 'health'
  /** Which groups it is about: every command. */
  | 'scope'
  /** Settings of a new group. */
  | 'group'
  /** Where operators' commands find `serve`, and the bearer token of both. */
  | 'access'
  | 'log'

export type Setting = {
  /** Path in the configuration file: `etcd.tls.ca`. */
  readonly name: string
  /** `--etcd-ca <file>`; null for secrets, which every user of the machine could read in `ps`. */
  readonly flag: string | null
  /** Its own variable, `TENURE_…`. */
  readonly variable: string
  /** Another program's variable that counts where nothing of Tenure's own says otherwise. */
  readonly foreignVariable: string | null
  readonly kind: SettingKind
  /** In the form of a parsed value; null: not set. */
  readonly byDefault: SettingValue | null
  readonly section: SettingSection
  readonly secret: boolean
  readonly description: string
}
