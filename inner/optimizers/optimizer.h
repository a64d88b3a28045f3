/** @file inner/optimizers/optimizer.h
 * Optimisers: from a gradient to new weights. One file of inner/optimizers/ each, a
 * bpt_optimizer_id, a row of a table and a name in BPT_OPTIMIZERS; for GPUs a rule of
 * inner/cuda/cuda_update.c.
 *
 * An update is elementwise, one pass over memory, but for what its segment's norms tell. Gradients
 * may be clipped by their global norm first. Running statistics are no business of an optimiser.
 *
 * Threads: the tables are constant; an update by any thread, on ranges that do not overlap. */
#ifndef BPT_INNER_OPTIMIZER_H
#define BPT_INNER_OPTIMIZER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BPT_MAX_STATES = 2 };

typedef struct bpt_optimizer bpt_optimizer;

/** How a network learns. Zeros are plain SGD; an optimiser reads the fields that are named after it
 * and no others. */
typedef struct bpt_learning {
    double momentum;                /* sgd, lars: in [0, 1) */
    double decay;                   /* all: weight decay, >= 0; for segments that decay */
    bool nesterov;                  /* sgd: needs momentum */
    double beta1, beta2;            /* adamw: in [0, 1) */
    double eps;                     /* adamw: > 0 */
    double eta;                     /* lars: trust coefficient, > 0 */
    double clip_norm;               /* all: largest norm of the whole gradient; 0: any */
    double step_limit;              /* all: largest rate * |g| / |w| of a segment that decays, g
                                     * clipped, trust aside; 0: any */
    double label_smoothing;         /* all: part of a label that goes to all classes, in [0, 1] */
    const bpt_optimizer *optimizer; /* NULL: sgd */
} bpt_learning;

/** Neighbouring values of one segment, to be updated. */
typedef struct bpt_update_range {
    float *w;                     /* shape [n], as the next two; no overlap */
    float *state[BPT_MAX_STATES]; /* as the table says, else NULL */
    const float *g;               /* not yet multiplied by scale */
    size_t n;
    float rate;
    bool decays;     /* whether the segment's weights decay */
    float scale;     /* of the gradient: below 1 where it is clipped or the step limited */
    float trust;     /* from bpt_optimizer.trust; 1 without */
    uint64_t update; /* number of this update, from 1 */
} bpt_update_range;

/** In the order of the table. For a switch without default: compilers then ask for a new one. */
typedef enum bpt_optimizer_id {
    BPT_OPTIMIZER_SGD,
    BPT_OPTIMIZER_ADAMW,
    BPT_OPTIMIZER_LARS,
} bpt_optimizer_id;

/** One optimiser. */
struct bpt_optimizer {
    bpt_optimizer_id id;
    const char *name;                       /* "adamw" */
    const char *state_name[BPT_MAX_STATES]; /* "exp_avg": vectors like the weights, zero at first */

    /** @return how many state vectors it keeps with these values, at most BPT_MAX_STATES */
    size_t (*n_states)(const bpt_learning *l);

    /** A factor for segments that decay; NULL where it needs none.
     * @param weights,gradient norms of the segment, the gradient's after clipping and before its
     *                         step is limited */
    float (*trust)(const bpt_learning *l, double weights, double gradient);

    void (*update)(const bpt_learning *l, const bpt_update_range *r);
};

/** Stochastic gradient descent as PyTorch's SGD (no dampening):
 *     g = scale * g + decay * w;  v = momentum * v + g;  w = w - rate * v
 * and with Nesterov's momentum (Sutskever, Martens, Dahl, Hinton 2013)
 *     w = w - rate * (g + momentum * v) */
extern const bpt_optimizer bpt_optimizer_sgd;

/** Adam with decoupled weight decay (Loshchilov, Hutter 2019, algorithm 2) as PyTorch's AdamW:
 *     w = w - rate * decay * w;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *     w = w - rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
extern const bpt_optimizer bpt_optimizer_adamw;

/** Layer-wise adaptive rates (You, Gitman, Ginsburg 2017, algorithm 1), with the rate outside of
 * the momentum as PyTorch's SGD has it:
 *     trust = eta |w| / (|g| + decay |w|) of the whole segment, 1 where either norm is 0
 *     v = momentum * v + trust * (g + decay * w);  w = w - rate * v
 * Segments that do not decay (biases, scales and shifts of a batch norm) have trust 1. */
extern const bpt_optimizer bpt_optimizer_lars;

/** Their names in the order of the table, as the choices of an option. */
#define BPT_OPTIMIZERS "sgd|adamw|lars"

/** @return optimiser number @p i, NULL past the last */
const bpt_optimizer *bpt_optimizer_at(size_t i);

/** @return the optimiser of @p l */
const bpt_optimizer *bpt_learning_optimizer(const bpt_learning *l);

/** @return what a gradient of norm @p norm is multiplied by, as PyTorch's clip_grad_norm_ does it:
 *          min(1, clip_norm / (norm + 1e-6)) */
float bpt_clip_scale(double clip_norm, double norm);

/** @return what the gradient of a segment is multiplied by so that one step moves the segment by no
 *          more than @p limit of its length, momentum aside (the clipping form of LARS, known as
 *          LARC): min(1, limit |w| / (rate |g|)); 1 where the weights are 0 */
float bpt_step_scale(double limit, double rate, double weights, double gradient);

/** @return whether updates need norms of segments or of the whole gradient */
bool bpt_learning_wants_norms(const bpt_learning *l);

/** @return whether updates need norms of weights */
bool bpt_learning_wants_weight_norms(const bpt_learning *l);

#endif
