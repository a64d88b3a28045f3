/** @file outer/exchange/coordinator.h
 * Decides for the whole job, from the workers' reports: when to meet, when to end, which data next.
 *
 * It lives where shard 0 is hosted and knows no MPI: reports in, directives out. Progress is the
 * number of samples trained on by all ranks together. At a meeting all ranks hold the same global
 * weights and nothing is under way: the moment to write a checkpoint, to evaluate, to stop.
 *
 * The next round of the partition is given out when every rank has made a whole pass over what it
 * holds, by the time per sample measured until then (IDPA, ALGORITHMS 1.2). Once all is given out,
 * a rank whose speed no longer fits its share makes samples move, as long as the job lasts.
 *
 * Threads: one thread at a time. */
#ifndef BPT_OUTER_COORDINATOR_H
#define BPT_OUTER_COORDINATOR_H

#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

/** Reasons of a meeting, as bits. */
enum {
    BPT_MEET_CHECKPOINT = 1,
    BPT_MEET_EVAL = 2,
    BPT_MEET_STOP = 4,                /* a rank asked to stop: save and leave */
    BPT_MEET_END = 8,                 /* total_samples are reached */
    BPT_MEET_CHECKPOINT_IF_ROOM = 16, /* nobody asked for it: a full disk ends no job */
};

/** What a worker says with each submission. */
typedef struct bpt_report {
    uint64_t samples; /* trained on since its last submission */
    uint64_t busy_ns; /* time spent computing on them, waiting not counted; 0: not measured */
    double quality;   /* Q_j: how good its weights are, > 0; 1 if not measured */
    double rates;     /* S: sum of the learning rates of its steps, as bpt_compensation() takes it;
                         not looked at without compensation */
    uint32_t covered; /* bpt_sampler_state.covered of its stream */
    uint32_t wants;   /* BPT_MEET_* bits that this rank asks for, mostly 0 */
} bpt_report;

/** What a worker is told with each reply. */
typedef struct bpt_directive {
    uint64_t progress;    /* samples trained on by all ranks */
    uint32_t meet;        /* BPT_MEET_* bits of a meeting that is called, else 0 */
    uint32_t rounds;      /* of the partition so far */
    const uint32_t *held; /* samples of each rank after the latest, shape [n_ranks]; borrowed; NULL
                             if rounds is 0 */
} bpt_directive;

/** Options; zero means none or never where nothing else is said. */
typedef struct bpt_coordinator_options {
    uint32_t n_ranks;
    uint64_t total_samples;    /* end of the job in samples of progress; 0: only by STOP */
    uint64_t checkpoint_every; /* samples of progress between checkpoints */
    uint64_t eval_every;       /* samples of progress between evaluations */
    uint64_t progress;         /* samples trained on before, where a job goes on from another's */
    uint64_t n_samples;        /* in the split to give out; 0: there is no partition */
    uint32_t n_rounds;         /* A: rounds to give it out in; 1 gives all at once */
    const double *speed;       /* what each rank is believed to do, shape [n_ranks], > 0; only read
                                  by create; NULL: all alike, and with n_rounds 1 even shares */
    double rebalance;          /* part of its share by which a rank may hold more or less than it
                                  should by its speed before samples move; 0: they never do */
} bpt_coordinator_options;

typedef struct bpt_coordinator bpt_coordinator;

/** @return the first multiple of @p every beyond @p progress; UINT64_MAX, never, for every 0 */
uint64_t bpt_coordinator_next(uint64_t progress, uint64_t every);

/** Makes a coordinator, which gives out the first round at once.
 * @param[out] c caller owns, bpt_coordinator_free()
 * @return BPT_OK, BPT_EUSAGE (fewer samples a round than ranks, a speed that is not positive),
 *         BPT_ENOMEM */
bpt_status bpt_coordinator_create(const bpt_coordinator_options *options, bpt_coordinator **c);
void bpt_coordinator_free(bpt_coordinator *c);

/** Takes one rank's report in; may call a meeting or make the next round.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_coordinator_report(bpt_coordinator *c, uint32_t rank, const bpt_report *report);

/** @return what to tell a worker now; @c held is valid until the next report */
bpt_directive bpt_coordinator_directive(const bpt_coordinator *c);

/** The ranks have met: settles the reasons and calls the meeting off.
 * @return BPT_MEET_* bits of the meeting, 0 if none was called */
uint32_t bpt_coordinator_met(bpt_coordinator *c);

/** @return samples of each rank after round @p round (made already, from 0), shape [n_ranks];
 * borrowed until the next report */
const uint32_t *bpt_coordinator_round(const bpt_coordinator *c, uint32_t round);

/** Makes @p to equal to @p from; both were made with the same options.
 * @return BPT_OK, BPT_ENOMEM (@p to is unusable) */
bpt_status bpt_coordinator_copy(bpt_coordinator *to, const bpt_coordinator *from);

/** Adds the state to a JSON text, as object @p key. */
void bpt_coordinator_save(const bpt_coordinator *c, bpt_json_writer *w, const char *key);

/** Goes on from a saved state. @p c was made with options of the same ranks, samples and rounds.
 * @return BPT_OK, BPT_EDATA (malformed, or of another job shape; @p c is unusable), BPT_ENOMEM */
bpt_status bpt_coordinator_load(bpt_coordinator *c, const bpt_json_doc *doc, const bpt_json *state);

#endif
