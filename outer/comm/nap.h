/** @file outer/comm/nap.h
 * Inside of outer/: how long the MPI thread sleeps between two polls.
 *
 * The pause is the time since something last moved, within bounds: what follows on an event is met
 * soon, and a rank where nothing moves pays little. A poll with its sleep and wake costs 5 to 40
 * microseconds of processor (virtual machines are at the upper end), which a rank that computes
 * would rather keep: an answer that comes some milliseconds later costs it nothing. While a thread
 * of the rank waits it computes nothing, so polls come sooner.
 *
 * A rank that is given but a part of a core, by a quota or by other programs, has that much less
 * for polls, and computes that much less until an answer is noticed: its pauses are longer in
 * proportion. How large the part is shows in the naps themselves: they last longer than was asked
 * for, since the thread is not let run again at once.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_NAP_H
#define BPT_OUTER_NAP_H

#include <stdint.h>

/** How late naps end; all zero at first. */
typedef struct bpt__lateness {
    uint64_t asked_ns, took_ns; /* of naps in the present window */
    double share;               /* asked / took in the last window, (0, 1]; 0: there was none yet */
} bpt__lateness;

/** Notes a nap that lasted to its end; the window ends when its naps took a tenth of a second. */
void bpt__lateness_add(bpt__lateness *l, uint64_t asked_ns, uint64_t took_ns);

/** Who minds that a nap is long. */
enum bpt__haste {
    BPT__CALM,      /* nobody: this rank computes */
    BPT__EXPECTING, /* others, who wait for what comes in here, while this rank computes: an eighth
                       of their wait at most is added, and a long quiet costs some dozens of polls
                     */
    BPT__HURRIED,   /* a thread of this rank, which waits for what will move */
};

/** @param quiet_ns since something last moved
 * @return nanoseconds, 20,000 to 32,000,000 */
uint64_t bpt__nap_ns(uint64_t quiet_ns, enum bpt__haste haste, const bpt__lateness *l);

#endif
