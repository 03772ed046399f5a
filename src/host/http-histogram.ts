/**
 * Durations of HTTP requests by method, route pattern and status, as a Prometheus histogram. Written out
 * by hand because one observation stands in the path of every request: two look-ups and two additions
 * here, against several microseconds in the metrics library.
 */
type Series = {
  readonly method: string
  readonly status: number
  readonly labels: string
  /** By bucket, not cumulated; the last is above all bounds. */
  readonly counts: number[]
  sumSeconds: number
}

export type HttpHistogram = {
  observe(method: string, route: string, status: number, durationSeconds: number): void
  /** In the text format, newline at the end; empty before the first observation. */
  text(): string
}

export function createHttpHistogram(
  name: string,
  help: string,
  bounds: readonly number[],
): HttpHistogram {
  const byRoute = new Map<string, Series[]>()
  const add = (method: string, route: string, status: number): Series => {
    const labels = `method="${method}",route="${route.replace(/["\\\n]/g, '_')}",status="${status}"`
    const counts = Array.from({ length: bounds.length + 1 }, () => 0)
    const series = { method, status, labels, counts, sumSeconds: 0 }
    const ofRoute = byRoute.get(route)
    if (ofRoute === undefined) byRoute.set(route, [series])
    else ofRoute.push(series)
    return series
  }
  return {
    observe(method, route, status, durationSeconds) {
      const known = byRoute.get(route)?.find((s) => s.status === status && s.method === method)
      const series = known ?? add(method, route, status)
      let bucket = 0
      while (bucket < bounds.length && durationSeconds > (bounds[bucket] as number)) bucket++
      series.counts[bucket] = (series.counts[bucket] as number) + 1
      series.sumSeconds += durationSeconds
    },
    text() {
      if (byRoute.size === 0) return ''
      const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`]
      for (const series of [...byRoute.values()].flat()) lines.push(...samples(series))
      return `${lines.join('\n')}\n`
    },
  }

  function samples({ labels, counts, sumSeconds }: Series): string[] {
    let total = 0
    const buckets = counts.map((count, at) => {
      total += count
      return `${name}_bucket{${labels},le="${bounds[at] ?? '+Inf'}"} ${total}`
    })
    return [...buckets, `${name}_sum{${labels}} ${sumSeconds}`, `${name}_count{${labels}} ${total}`]
  }
}
