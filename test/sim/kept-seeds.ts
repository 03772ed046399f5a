/**
 * Every plan that ever failed, shrunk, as data: it stays meaningful when the generator changes. What it
 * found is in its name here; the plan is in `kept/<name>.json`.
 */
import { readFileSync } from 'node:fs'
import type { Plan } from './plan.ts'

export type KeptSeed = { readonly name: string; readonly found: string; readonly plan: Plan }

const FOUND: Readonly<Record<string, string>> = {
  'campaign-without-end':
    'a session ended during a campaign, and the member never campaigned for that partition again (L1)',
  'granted-before-claim-known':
    "a claim's reply was lost, and what others granted meanwhile was never taken up (L4)",
  'raise-over-an-unseen-restore':
    'etcd was restored behind an outage; maps of the risen incarnation still held what the restore took (S8)',
}

export const KEPT_SEEDS: readonly KeptSeed[] = Object.entries(FOUND).map(([name, found]) => {
  const url = new URL(`./kept/${name}.json`, import.meta.url)
  return { name, found, plan: JSON.parse(readFileSync(url, 'utf8')) as Plan }
})
