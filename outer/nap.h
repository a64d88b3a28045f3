/** @file outer/nap.h
 * Inside of outer/: how long the MPI thread sleeps between two polls.
 *
 * The pause is the time since something last moved, within bounds: what follows on an event is met
 * soon, and a rank where nothing moves pays little. A poll with its sleep and wake costs 5 to 40
 * microseconds of processor (virtual machines are at the upper end), which a rank that computes
 * would rather keep: an answer that comes some milliseconds later costs it nothing. One that gets
 * but a part of a core has that much less to give, and computes that much less until the answer is
 * noticed: its pauses are longer in proportion. While a thread of the rank waits it computes
 * nothing, so polls come sooner.
 *
 * Threads: pure functions, except that bpt__core_share_now() reads clocks. */
#ifndef BPT_OUTER_NAP_H
#define BPT_OUTER_NAP_H

#include <stdbool.h>
#include <stdint.h>

/** What part of a core this process gets; all zero at first. */
typedef struct bpt__core_share {
    uint64_t wall_ns, cpu_ns; /* as the present window began */
    double share;             /* in the last window; 0: there was none yet */
} bpt__core_share;

/** Notes times; ends the window if it has lasted a tenth of a second.
 * @param cpu_ns of all threads of the process */
void bpt__core_share_add(bpt__core_share *s, uint64_t wall_ns, uint64_t cpu_ns);

/** Adds the times of now. Reads a clock, and another where a window ends. */
void bpt__core_share_now(bpt__core_share *s);

/** @param quiet_ns   since something last moved
 * @param waited_for whether a thread of this rank waits for what will move
 * @return nanoseconds, 20,000 to 32,000,000 */
uint64_t bpt__nap_ns(uint64_t quiet_ns, bool waited_for, const bpt__core_share *s);

#endif
