/** How a worker of the run ends by itself without a fault of its own. */

/** A server could not be reached at the start. */
export const EXIT_UNREACHABLE = 3
