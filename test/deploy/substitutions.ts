/**
 * What differs between a container and the process that stands for it here. Nothing else may: command,
 * environment, probes, hooks, signals and times are those of the file.
 *
 * | in the file                              | here                                                     |
 * |------------------------------------------|----------------------------------------------------------|
 * | `name:port` of another container         | `127.0.0.1` and the free port that this one was given      |
 * | `0.0.0.0:port`, `127.0.0.1:port` (own)   | the same                                                  |
 * | `0.0.0.0`, every address                 | `127.0.0.1`                                               |
 * | a port alone, as a value or after `=`    | that free port                                            |
 * | a folder of a volume                     | a temporary folder                                        |
 * | `etcd`, `nats-server`                    | the programs that this machine has                        |
 * | `wget --spider` (of the NATS image)      | a GET by this process: wget may be missing here           |
 * | PATH                                     | this process's Node, then the machine's own               |
 *
 * Longer texts are replaced before shorter ones.
 */
export type Substitutions = {
  /** Anywhere inside a word. */
  readonly fragments: ReadonlyMap<string, string>
  /** A whole word, or all that follows its `=`. */
  readonly words: ReadonlyMap<string, string>
}

export function substitute(text: string, { fragments, words }: Substitutions): string {
  const [, name = '', value = text] = /^(--[a-z_-]+=)(.*)$/.exec(text) ?? []
  const whole = words.get(value)
  if (whole !== undefined) return name + whole
  const known = [...fragments.keys()].sort((a, b) => b.length - a.length)
  if (known.length === 0) return text
  const pattern = new RegExp(
    known.map((one) => one.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|'),
    'g',
  )
  return text.replace(pattern, (found) => fragments.get(found) ?? found)
}

/** Ports of one container, `containerPort → port here`, under its own and the wildcard address. */
export function ownPorts(ports: ReadonlyMap<number, number>): Substitutions {
  const fragments = new Map([['0.0.0.0', '127.0.0.1']])
  const words = new Map<string, string>()
  for (const [inside, here] of ports) {
    for (const host of ['0.0.0.0', '127.0.0.1'])
      fragments.set(`${host}:${inside}`, `127.0.0.1:${here}`)
    words.set(String(inside), String(here))
  }
  return { fragments, words }
}

export function combine(...all: readonly Substitutions[]): Substitutions {
  return {
    fragments: new Map(all.flatMap(({ fragments }) => [...fragments])),
    words: new Map(all.flatMap(({ words }) => [...words])),
  }
}
