/** All mutants. */
import type { Mutant } from './mutant.ts'
import { MUTANTS_OF_CORE } from './mutants-of-core.ts'
import { MUTANTS_OF_RUNTIME } from './mutants-of-runtime.ts'

export const MUTANTS: readonly Mutant[] = [...MUTANTS_OF_CORE, ...MUTANTS_OF_RUNTIME]
