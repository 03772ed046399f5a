/**
 * deploy/kubernetes as a cluster would see it: documents by kind, and each pod's container with its
 * environment put together from the ConfigMap, plain values and the pod's own fields.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { ContainerSpec, Probe } from './container.ts'
import { type Image, REPOSITORY } from './image.ts'

type Labels = Readonly<Record<string, string>>

export type ManifestProbe = {
  readonly httpGet: { readonly path: string; readonly port: string }
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
}

type EnvironmentEntry = {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly secretKeyRef?: { readonly name: string; readonly optional?: boolean }
  }
}

export type ManifestContainer = {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args: readonly string[]
  readonly env?: readonly EnvironmentEntry[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: ManifestProbe
  readonly livenessProbe: ManifestProbe
  readonly readinessProbe: ManifestProbe
  readonly lifecycle?: {
    readonly preStop?: { readonly exec: { readonly command: readonly string[] } }
  }
  readonly resources: { readonly requests: Labels }
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean
    readonly readOnlyRootFilesystem: boolean
    readonly capabilities: { readonly drop: readonly string[] }
  }
}

type PodTemplate = {
  readonly metadata: { readonly labels: Labels }
  readonly spec: {
    readonly terminationGracePeriodSeconds: number
    readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number }
    readonly containers: readonly ManifestContainer[]
  }
}

export type Workload = {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly replicas: number
    readonly serviceName?: string
    readonly selector: { readonly matchLabels: Labels }
    readonly template: PodTemplate
  }
}

export type Manifests = {
  readonly settings: ReadonlyMap<string, Labels>
  readonly services: ReadonlyMap<string, { readonly clusterIP?: string; readonly selector: Labels }>
  readonly budgets: readonly { readonly selector: { readonly matchLabels: Labels } }[]
  readonly deployment: Workload
  readonly statefulSet: Workload
}

type Document = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data?: unknown
  readonly spec?: unknown
}

export function readManifests(): Manifests {
  const folder = join(REPOSITORY, 'deploy/kubernetes')
  const documents = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')))
    .map((document) => document.toJS({}) as Document)
  const ofKind = (kind: string) => documents.filter((document) => document.kind === kind)
  const only = (kind: string): Workload => {
    const [found, ...others] = ofKind(kind)
    if (found === undefined || others.length > 0) throw new Error(`not exactly one ${kind}`)
    return found as Workload
  }
  const byName = <T>(kind: string, part: 'data' | 'spec') =>
    new Map(ofKind(kind).map((one) => [one.metadata.name, one[part] as T]))
  return {
    settings: byName('ConfigMap', 'data'),
    services: byName('Service', 'spec'),
    budgets: [...byName<Manifests['budgets'][number]>('PodDisruptionBudget', 'spec').values()],
    deployment: only('Deployment'),
    statefulSet: only('StatefulSet'),
  }
}

export type PodSpec = ContainerSpec & { readonly liveness: Probe; readonly readiness: Probe }

/** The container of the pod of that name. No Secret exists; the one that is named must be optional. */
export function podContainer(
  pod: string,
  workload: Workload,
  { settings }: Manifests,
  image: Image,
): PodSpec {
  const { spec } = workload.spec.template
  const container = onlyContainer(workload)
  const { startupProbe, livenessProbe, readinessProbe, lifecycle } = container
  const shared = container.envFrom?.map(({ configMapRef }) => {
    const found = settings.get(configMapRef.name)
    if (found === undefined) throw new Error(`there is no ConfigMap ${configMapRef.name}`)
    return found
  })
  const own = container.env?.flatMap((entry) => {
    const value = environmentValue(entry, pod)
    return value === null ? [] : [[entry.name, value] as const]
  })
  return {
    name: pod,
    words: [...(container.command ?? image.entrypoint), ...container.args],
    environment: Object.assign(
      {},
      image.environment,
      ...(shared ?? []),
      Object.fromEntries(own ?? []),
    ),
    startup: probeOf(startupProbe, container),
    startupMs: (startupProbe.periodSeconds ?? 10) * (startupProbe.failureThreshold ?? 3) * 1000,
    liveness: probeOf(livenessProbe, container),
    readiness: probeOf(readinessProbe, container),
    preStop: lifecycle?.preStop?.exec.command ?? null,
    stopGraceMs: spec.terminationGracePeriodSeconds * 1000,
  }
}

export function onlyContainer(workload: Workload): ManifestContainer {
  const [container, ...others] = workload.spec.template.spec.containers
  if (container === undefined || others.length > 0) throw new Error('not exactly one container')
  return container
}

function environmentValue(entry: EnvironmentEntry, pod: string): string | null {
  const { value, valueFrom } = entry
  if (value !== undefined) return value
  if (valueFrom?.fieldRef?.fieldPath === 'metadata.name') return pod
  if (valueFrom?.secretKeyRef?.optional === true) return null
  throw new Error(`${entry.name}: this test does not know where its value comes from`)
}

function probeOf(probe: ManifestProbe, { ports }: ManifestContainer): Probe {
  const { path, port } = probe.httpGet
  const found = ports.find(({ name }) => name === port)
  if (found === undefined) throw new Error(`a probe names port ${port}, which the container lacks`)
  // Kubernetes' own default is one second.
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
  return { type: 'http', port: found.containerPort, path, timeoutMs }
}
