/** @file scheduler/policy.h
 * Scheduling policies: which ready task runs next, and on which worker.
 *
 * A policy is a row of pure functions, one file of scheduler/policies/ each; the pool
 * (scheduler/pool.h) and the simulator (scheduler/simulate.h) run the same rows. Every worker has
 * a queue of ready tasks in the order of their keys. A policy gives the keys, the queue that a
 * task goes to when it becomes ready, and who may take from the queues of others. Tasks and edges
 * alone decide what is computed: no policy changes a result.
 *
 * Threads: policies are constant; several workers may call one at once. */
#ifndef BPT_SCHEDULER_POLICY_H
#define BPT_SCHEDULER_POLICY_H

#include "base/status.h"
#include "scheduler/machine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** What one worker was given. Read while others write it: a policy must do with values that are a
 * moment old. Cleared before a run. */
typedef struct bpt_load {
    _Alignas(64) _Atomic uint64_t until_ns; /* when the task that it runs should end; 0: none */
    _Atomic uint64_t queued_ns;             /* expected time of the tasks in its queue */
    _Atomic uint64_t assigned_ns;           /* expected time of all it was given in this run */
} bpt_load;

/** What a policy sees when it looks for a place. */
typedef struct bpt_policy_view {
    const bpt_graph *graph;
    const bpt_machine *machine;
    const bpt_load *loads; /* shape [n_workers] */
    const uint8_t *ran_on; /* worker of each task that is over, shape [n_tasks]; NULL if workers are
                              alike */
    uint64_t begin_ns, now_ns; /* when the run began, and now; of one clock */
} bpt_policy_view;

/** Whose queue a worker may take from once its own is empty: the task of greatest key of all. */
typedef enum bpt_stealing {
    BPT_STEAL_ANY,
    BPT_STEAL_ALIKE, /* workers of its own kind */
    BPT_STEAL_NEVER,
} bpt_stealing;

/** One policy. */
typedef struct bpt_policy {
    const char *name; /* "critical-path" */

    /** Writes the keys, each at least 1: of ready tasks the greatest is taken first, the lower id
     * among equals. NULL: in the order of becoming ready.
     * @param[out] key shape [n_tasks]
     * @return the patience: a worker puts off its own best task for one that it may steal whose key
     *         is greater by more than the gain. Without keys it first does all that is in its own
     *         queue */
    bpt_patience (*keys)(const bpt_machine *m, const bpt_graph *g, uint64_t *key);

    /** @return the worker whose queue task @p id goes to; @p maker is the one that made it ready */
    unsigned (*place)(const bpt_policy_view *v, uint32_t id, unsigned maker);

    /* Where workers are alike place is not asked: a task stays with its maker, which goes on with
     * the best of those at once; tasks that wait for none are dealt out in turn. */
    bool stays;

    bpt_stealing stealing;
} bpt_policy;

/** @return whether the policy is asked for a place on such workers */
static inline bool bpt_policy_places(const bpt_policy *policy, const bpt_machine *m) {
    return !policy->stays || m->n_kinds > 1;
}

/** Longest path first, by measured costs: the key is the upward rank, but siblings are kept
 * together where there is time (bpt_machine_keys()). A task stays with the worker that made it
 * ready, whose cache holds its input: that is the rule of locality. Idle workers take the task of
 * greatest key from the others, busy ones do if it is greater by the gain that a
 * move asks for (bpt_patience). Among unlike workers a task goes where it should end first, as with
 * eft. The default. */
extern const bpt_policy bpt_policy_critical_path;

/** BPT-CNN as recalled (ALGORITHMS 1.5): level by level from the entry, tasks of a level equal;
 * each to the worker with the least assigned work, where it stays. */
extern const bpt_policy bpt_policy_level;

/** Earliest finish time: each task goes to the worker that should end it first, its transfers and
 * what it was given before counted in (StarPU's dmda); among alike workers it stays where it became
 * ready unless another would end it sooner by more than that gain; queues in the order of upward
 * rank with mean costs and transfers (HEFT), siblings together as by critical-path. Workers of a
 * kind take from each other. */
extern const bpt_policy bpt_policy_eft;

/** One queue, in the order of becoming ready: what the others are measured against. */
extern const bpt_policy bpt_policy_fifo;

/** @return policy number @p i, NULL past the last; the first is the default */
const bpt_policy *bpt_policy_at(size_t i);

/** Finds a policy. @return BPT_OK, BPT_EUSAGE (no such policy; the hint lists them) */
bpt_status bpt_policy_find(const char *name, const bpt_policy **policy);

#endif
