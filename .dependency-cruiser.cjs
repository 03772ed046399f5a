// The import rules of the house. Each part may import what is named for it, and nothing else.
const only = (from, allowed, comment) => ({
  name: `${from.replace('src/', '')}-imports`,
  comment,
  severity: 'error',
  from: { path: `^${from}/` },
  to: { pathNot: allowed.map((path) => `^(${path})`) },
})

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    only('src/core', ['src/core/'], 'pure: no I/O, no clock, no random, no library'),
    only('src/evidence', ['src/core/', 'src/evidence/'], 'pure: judges logs, reads none'),
    only('src/ports', ['src/core/', 'src/ports/'], 'interfaces over core types'),
    // zlib: deflates what goes out over the broadcast; it computes and does no I/O.
    only(
      'src/runtime',
      ['src/core/', 'src/ports/', 'src/runtime/', 'zlib$|node:zlib$'],
      'drives core over ports',
    ),
    only(
      'src/work',
      ['src/core/', 'src/ports/', 'src/work/', 'src/runtime/(worker-options|deferred|waiting)'],
      'work on partitions, over ports; no resource, no server',
    ),
    only(
      'src/etcd',
      [
        'src/core/',
        'src/ports/',
        'src/etcd/',
        'node_modules/(etcd3|@grpc|cockatiel)',
        'fs|node:fs',
      ],
      'the store port on etcd',
    ),
    only(
      'src/nats',
      ['src/core/', 'src/ports/', 'src/nats/', 'node_modules/nats/', 'fs|node:fs'],
      'the broadcast port on NATS',
    ),
    only(
      'src/ring',
      ['src/core/', 'src/ring/', 'node_modules/(@types/)?hashring/', 'crypto|node:crypto'],
      'the ring order',
    ),
    only(
      'src/host',
      [
        'src/core/',
        'src/ports/',
        'src/host/',
        'node:',
        'os|crypto|perf_hooks|async_hooks',
        'node_modules/(pino|prom-client)',
      ],
      'clock, random and telemetry of this process',
    ),
    only(
      'src/testing',
      [
        'src/core/',
        'src/ports/',
        'src/runtime/',
        'src/ring/',
        'src/testing/',
        'src/fence/fence.ts$',
        '(node:)?(child_process|events|fs|readline|timers/promises)$',
      ],
      'the in-memory world, and the conformance suite of fences with its processes',
    ),
    only(
      'src/fence',
      ['src/core/', 'src/ports/', 'src/fence/', '(node:)?(crypto|fs|path)$', 'node_modules/'],
      'fences over core; the resources are the clients that users pass in',
    ),
    {
      name: 'fence-postgres-client',
      severity: 'error',
      from: { pathNot: '^src/(fence/postgres|dev/|bench/raw-fences)' },
      to: { path: '^node_modules/(@types/)?pg/' },
    },
    {
      name: 'fence-clients-are-types',
      comment: 'the user passes the client in, so a fence loads none itself',
      severity: 'error',
      from: { path: '^src/fence/' },
      to: { path: '^node_modules/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'http-and-cli-know-no-etcd-keys',
      severity: 'error',
      from: { path: '^src/(http|cli)/' },
      to: { path: '^src/(etcd|nats|core/keys)' },
    },
    {
      name: 'only-adapters-import-clients',
      severity: 'error',
      from: { pathNot: '^src/(etcd|nats|ring|fence/etcd|bench/raw-)' },
      to: { path: '^node_modules/(etcd3|@grpc|nats|hashring)/' },
    },
    {
      name: 'only-roots-construct-adapters',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(index|main|composition|etcd/|nats/|ring/|host/|testing/|dev/|bench/)',
      },
      to: { path: '^src/(etcd|nats|ring|host)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types'],
    },
  },
}
