/** The source of randomness: seeded in simulation, the system's in production. */
import type { OperationId, SessionId } from '../core/ids.ts'

export interface Random {
  /** Uniform in [0, 1). */
  fraction(): number
  /** A fresh lease id, 1 .. 2^63-1. */
  sessionId(): SessionId
  operationId(): OperationId
}
