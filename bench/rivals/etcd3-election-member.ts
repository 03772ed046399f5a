/** A member that campaigns for every partition with etcd3's `Election`. */
import { noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import { openMember } from './member-side.ts'

/** As in the library's documentation. */
const NEW_CAMPAIGN_MS = 5000
const WARM_UP = 50

const member = openMember()
const { store, prefix, leaseTtlMs, member: name } = member.task
const isNoop = process.argv.includes('noop')
const client = new Etcd3({
  hosts: store.split(','),
  ...(isNoop ? { faultHandling: { global: noop, host: () => noop } } : {}),
})
const elections = client.namespace(prefix)
let waiting = member.others.length

function runCampaign(partition: number, isPlaced?: () => void): void {
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
  campaign.getCampaignKey().then(isPlaced, () => {})
}

/** A member is measured warm, as Tenure's are: compiled code and an open connection. */
async function warmUp(): Promise<void> {
  const campaigns = Array.from({ length: WARM_UP }, (_, one) =>
    elections.election(`warm-up-${name}-${one}`, leaseTtlMs / 1000).campaign(name),
  )
  await Promise.all(campaigns.map((campaign) => campaign.wait()))
  await Promise.all(campaigns.map((campaign) => campaign.resign()))
}

await warmUp()
await member.begin()
for (const partition of member.own) runCampaign(partition)
await member.standby
for (const partition of member.others) {
  runCampaign(partition, () => {
    waiting -= 1
    if (waiting === 0) member.standing()
  })
}
