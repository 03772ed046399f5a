/** `tenure/fence/http`: the resource's side (a Fastify plugin) and the worker's (a fetch). */
export {
  createHttpFence,
  type Fetch,
  fencedFetch,
  type HttpEffect,
  type HttpFence,
  type HttpFenceOptions,
} from './http-client.ts'
export {
  FENCE_HEADER,
  type FenceProblem,
  type FenceRefusal,
  SEAL_PATH,
  TOKEN_HEADER,
} from './http-problem.ts'
export {
  createMemoryHighWater,
  type FencePluginOptions,
  fencePlugin,
  type HighWaterFile,
  type HighWaterStore,
  openHighWaterFile,
  type RequestFence,
} from './http-server.ts'
