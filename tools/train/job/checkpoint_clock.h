/** @file tools/train/job/checkpoint_clock.h
 * When a checkpoint is due by the clock, whoever asks for none: what --checkpoint-minutes says. A
 * pure rule.
 *
 * Threads: any, one at a time. */
#ifndef BPT_TOOLS_CHECKPOINT_CLOCK_H
#define BPT_TOOLS_CHECKPOINT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_checkpoint_clock {
    uint64_t every_ns; /* 0: none is ever due */
    uint64_t due_ns;   /* of bpt_clock_ns() */
} bpt_checkpoint_clock;

/** @param minutes >= 0, fractions too; 0: none is ever due
 * @param now_ns   bpt_clock_ns(), here and below */
bpt_checkpoint_clock bpt_checkpoint_clock_begin(double minutes, uint64_t now_ns);

bool bpt_checkpoint_clock_due(const bpt_checkpoint_clock *c, uint64_t now_ns);

/** One has been made just now, for whatever reason, or is under way, or none can be.
 * @param took_ns what making it took, 0 if none was made: the next one is due later where that is
 *                more than a hundredth of the time between two */
void bpt_checkpoint_clock_put_off(bpt_checkpoint_clock *c, uint64_t now_ns, uint64_t took_ns);

#endif
