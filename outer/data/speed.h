/** @file outer/data/speed.h
 * How long a rank needs for a sample, from times that are noisy and may change for good.
 *
 * Times are gathered into measurements of a quarter of a second: single steps say little where a
 * machine also does other things. The estimate is the mean over a window of measurements. A machine
 * that becomes slower or faster shows as two in a row that are off the mean by more than a quarter
 * to the same side: then the window begins anew with these two. One alone is taken for noise. A
 * window that has grown long counts half from then on, so that it follows slow changes.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_SPEED_H
#define BPT_OUTER_SPEED_H

#include <stdbool.h>
#include <stdint.h>

/** So many samples took so long. */
typedef struct bpt_timing {
    uint64_t samples, busy_ns;
} bpt_timing;

/** An estimate; all zero before the first time. */
typedef struct bpt_speed {
    bpt_timing window; /* sum of its measurements */
    bpt_timing last;   /* the latest measurement */
    bpt_timing next;   /* what the next is gathered from so far */
    uint32_t n;        /* measurements in the window, or half of those that were */
} bpt_speed;

/** Takes a time in; one of no samples or of no time is passed over. */
void bpt_speed_measure(bpt_speed *s, bpt_timing timing);

/** @return nanoseconds per sample, by what there is before the first measurement; 0 before the
 * first time */
double bpt_speed_sample_ns(const bpt_speed *s);

/** @return whether the estimate rests on at least eight measurements: two seconds */
bool bpt_speed_settled(const bpt_speed *s);

#endif
