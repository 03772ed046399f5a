/** A member that campaigns for every partition with etcd3's `Election`. */
import { noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import { openMember } from './member-side.ts'

/** As in the library's documentation. */
const NEW_CAMPAIGN_MS = 5000
const WARM_UP = 50
const WARM_UP_TTL_S = 60
/** More at once from all members, and etcd refuses some of them. */
const PLACED_AT_ONCE = 100

const member = openMember()
const { store, prefix, leaseTtlMs, member: name } = member.task
const isNoop = process.argv.includes('noop')
const client = new Etcd3({
  hosts: store.split(','),
  ...(isNoop ? { faultHandling: { global: noop, host: () => noop } } : {}),
})
const elections = client.namespace(prefix)

function runCampaign(partition: number): Promise<unknown> {
  const campaign = elections.election(String(partition), leaseTtlMs / 1000).campaign(name)
  let isElected = false
  campaign.on('elected', () => {
    isElected = true
    member.held([partition])
  })
  campaign.on('error', (error) => {
    if (isElected) member.lost([partition])
    isElected = false
    member.failed(error)
    setTimeout(runCampaign, NEW_CAMPAIGN_MS, partition)
  })
  return campaign.getCampaignKey().catch(() => {})
}

async function runCampaigns(partitions: readonly number[]): Promise<void> {
  const left = [...partitions]
  const one = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await runCampaign(next)
  }
  await Promise.all(Array.from({ length: PLACED_AT_ONCE }, one))
}

/** A member is measured warm, as Tenure's are: compiled code and an open connection. */
async function warmUp(): Promise<void> {
  const campaigns = Array.from({ length: WARM_UP }, (_, one) =>
    elections.election(`warm-up-${name}-${one}`, WARM_UP_TTL_S).campaign(name),
  )
  // One that fails has warmed as well.
  await Promise.allSettled(campaigns.map((campaign) => campaign.wait()))
  await Promise.allSettled(campaigns.map((campaign) => campaign.resign()))
}

await warmUp()
await member.begin()
await runCampaigns(member.own)
await member.standby
await runCampaigns(member.others)
member.standing()
