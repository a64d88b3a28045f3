/** @file tools/plan/predict.h
 * How fast ranks train together: from what each does alone, what links carry, and what messages
 * cost. The formulas are in docs/planning.md, with what runs were measured to do beside them.
 *
 * What is foretold is the pace between evaluations and checkpoints, not how much an image teaches:
 * an epoch of one way is not one of another.
 *
 * Threads: pure functions. */
#ifndef BPT_TOOLS_PREDICT_H
#define BPT_TOOLS_PREDICT_H

#include "tools/plan/cluster.h"
#include "tools/plan/gradient_walk.h"
#include "tools/train/options/train_options.h"

/** How ranks learn together. */
typedef struct bpt_way {
    bpt_update_choice update;       /* LOCAL, AGWU, SGWU or ALLREDUCE */
    bpt_partition_choice partition; /* EVEN or IDPA; of local any */
} bpt_way;

/** The ranks that train: nodes, borrowed, shape [n]. */
typedef struct bpt_team {
    const bpt_node *const *nodes;
    uint32_t n; /* at least 1 */
    double latency_s;
} bpt_team;

/** What they train. */
typedef struct bpt_work {
    double weight_bytes;            /* of all that an exchange carries, > 0 */
    bpt_gradient_schedule gradient; /* of allreduce; borrowed */
    uint32_t batch;                 /* samples of a step: of a rank, under allreduce of all */
    uint32_t least_batch;           /* samples of a step of a rank that the model can learn from */
    uint64_t epoch_samples, total_samples; /* of all ranks, in an epoch and in the run, > 0 */
    bool shared_momentum;                  /* bpt_train_shares_momentum() */
} bpt_work;

/** Room for what is worked out of each rank; shape [n], of cut [n + 1]. */
typedef struct bpt_plan_scratch {
    double *speed, *part, *more;
    uint64_t *cut;
} bpt_plan_scratch;

/** @param n ranks, at least 1
 * @param[out] scratch caller owns, bpt_plan_scratch_free(), also on error
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_plan_scratch_make(uint32_t n, bpt_plan_scratch *scratch);
void bpt_plan_scratch_free(bpt_plan_scratch *scratch);

/** What limits them. */
typedef enum bpt_plan_limit {
    BPT_PLAN_COMPUTE, /* nothing else takes as much */
    BPT_PLAN_DATA,    /* reading images */
    BPT_PLAN_SLOWEST, /* the others wait for one rank's part of the work */
    BPT_PLAN_MESSAGES,
    BPT_N_PLAN_LIMITS
} bpt_plan_limit;

/** A prediction. */
typedef struct bpt_forecast {
    double images_per_s;
    double part;             /* of the sum of what the ranks do alone */
    bpt_plan_limit limit;    /* what takes most of what is missing */
    double every;            /* steps of a rank between two exchanges, the most of any; 0: none */
    bool links_are_full;     /* so many, since links carry no more */
    double sent_bytes_per_s; /* of the rank that sends most */
} bpt_forecast;

/** @return seconds that a step of so many samples takes on a node by itself, reading its images
 *          included */
double bpt_node_training_s(const bpt_node *node, double samples);

/** @param samples of a step
 * @return images a second that a node trains on by itself */
double bpt_node_alone(const bpt_node *node, double samples);

/** @return whether bpt-train goes this way with so many ranks: local is for one, all others are for
 * several; a rank has as many samples as it needs, and all together no more than an epoch */
bool bpt_way_suits(bpt_way way, const bpt_team *team, const bpt_work *work);

/** @param way suits
 * @param scratch for as many ranks at least
 * @param[out] f the prediction */
void bpt_predict(bpt_way way, const bpt_team *team, const bpt_work *work, bpt_plan_scratch *scratch,
                 bpt_forecast *f);

/** @return "compute", "data", "slowest rank", "messages" */
const char *bpt_plan_limit_name(bpt_plan_limit limit);

#endif
