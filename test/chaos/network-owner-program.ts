/** Makes a network with one process in it, says so, and waits to be killed: `network-owner-program.ts PREFIX`. */
import { spawn } from 'node:child_process'
import { createLayout } from './layout.ts'
import { createNetwork, within } from './network.ts'

const prefix = process.argv[2] ?? ''
const { layout } = await createNetwork(createLayout(prefix))
const [program = '', ...words] = within(layout.nodes[0]?.namespace ?? '')
const inside = spawn(program, [...words, 'sleep', '1000'], { detached: true, stdio: 'ignore' })
console.log(JSON.stringify({ sleeper: inside.pid }))
setInterval(() => {}, 1000)
