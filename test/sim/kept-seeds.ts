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
  'raise-that-a-wipe-takes-back':
    'etcd was wiped right after a raise; a mirror that had heard of it waited for a list that new for ever (L4)',
  'election-of-a-group-made-anew':
    'etcd was wiped; the election was open before the settings were there again, and nobody campaigned ever after (L4)',
  'vacant-while-in-doubt':
    'a partition came free while its last owner still doubted its own grant; its turn to campaign passed, and never came again (L6)',
  'restore-of-what-a-wipe-ended':
    'etcd was restored to a time before it was wiped; the checker called what it had granted then new (its S1)',
  'probe-with-an-owner-without-session':
    'an owner had lost its session but not its lease; the checker took the group for settled (its L5)',
  'probe-before-a-member-is-back':
    'a member waited for its name, which a twin had had; its return counted as moves of another that left (its L5)',
}

export const KEPT_SEEDS: readonly KeptSeed[] = Object.entries(FOUND).map(([name, found]) => {
  const url = new URL(`./kept/${name}.json`, import.meta.url)
  return { name, found, plan: JSON.parse(readFileSync(url, 'utf8')) as Plan }
})
