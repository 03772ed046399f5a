/** The rivals that `npm run bench` measures beside Tenure, the best known first. */
import type { Rival } from '../../src/bench/bench-types.ts'

export const rivals: readonly Rival[] = []
