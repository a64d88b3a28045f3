/** @file outer/rules/update_rule.h
 * Update rules: how what the workers send becomes the next global weights.
 *
 * A rule is a row of pure functions, one file of outer/rules/ each. The result depends on the
 * submissions and on the order in which the rule is given them, and on nothing else: sums run in
 * rank order, so a synchronous rule gives the same bits whoever arrives first.
 *
 * Versions count applied updates of a shard: version 0 is the initial weights, an asynchronous rule
 * makes one version a submission, a synchronous one a version a round.
 *
 * Threads: everything here is constant and may be used by any thread. */
#ifndef BPT_OUTER_UPDATE_RULE_H
#define BPT_OUTER_UPDATE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What workers send, and what comes back. */
typedef enum bpt_payload {
    BPT_PAYLOAD_DELTA,   /* local weights minus those it started from; back: global weights */
    BPT_PAYLOAD_WEIGHTS, /* local weights; back: global weights */
    BPT_PAYLOAD_NONE,    /* no values: only what is done, and when to meet */
} bpt_payload;

/** What the weight of a submission may depend on. */
typedef struct bpt_update_inputs {
    uint32_t n_workers;    /* m */
    uint64_t version;      /* i - 1: of the shard before the update */
    const uint64_t *base;  /* k_j: version that each worker started from, shape [m] */
    const double *quality; /* Q_j of each worker's latest submission, shape [m], > 0; 0 of one that
                              has made none */
    double elasticity;     /* alpha, of easgd */
} bpt_update_inputs;

/** What a rule takes, and what may be laid over one of deltas; zeros: nothing.
 *
 * Momentum of the server: the global values keep their last change and add it again, times B:
 *     v <- B v + d,  W <- W + v      d: what the rule alone would add to W
 * (FedAvgM, Hsu, Qi, Brown 2019; with a synchronous rule, B = 1 - 1/m and an unscaled learning
 * rate that is block momentum, BMUF, Chen, Huo 2016: recalled.) What a push adds in the long run is
 * 1 / (1 - B) times its d. B counts per update: an asynchronous rule makes m of them where a
 * synchronous one makes one.
 *
 * Delay compensation, of an asynchronous rule: a delta is corrected for what has changed since the
 * weights that it grew from, w_base, after DC-ASGD (outer/rules/compensate.h has the derivation):
 *     delta <- delta - (lambda / S) delta*delta*(W - w_base)
 * S is the sum of the learning rates of the delta's steps. */
typedef struct bpt_update_terms {
    double momentum;     /* B, in [0, 1) */
    double compensation; /* lambda, >= 0, in 1 over the unit of the loss */
    double elasticity;   /* alpha of easgd, in (0, 1); other rules: 0 */
} bpt_update_terms;

/** @param rates S, >= 0; over 1 - mu where the worker has a momentum mu
 * @return lambda / S; 0 where there is no such number: with S = 0 there is nothing to correct */
float bpt_compensation(const bpt_update_terms *terms, double rates);

/** One merge: what comes in, and into what. */
typedef struct bpt_merge {
    size_t begin, end;         /* elements that are merged, of all arrays */
    float *global;             /* shape [>= end], as all below */
    const float *const *parts; /* submissions, shape [n_parts], in rank order */
    const float *factors;      /* shape [n_parts] */
    uint32_t n_parts;          /* 1 for an asynchronous rule */
    float *velocity;           /* v of the server's momentum; NULL: none. Rules of deltas only */
    float momentum;            /* B */
    const float *base;  /* that the submission grew from; NULL: no compensation. Asynchronous rules
                           of deltas only */
    float compensation; /* lambda / S of the submission */
} bpt_merge;

/** One rule. */
typedef struct bpt_update_rule {
    const char *name; /* "agwu" */
    bool synchronous; /* an update needs the submissions of all workers */
    bpt_payload payload;
    bool ignores_quality; /* an asynchronous rule whose workers count on gamma alone: easgd's pull
                             back by the same alpha */

    /** Weighs the submissions.
     * @param[out] gamma shape [m]: of each worker, should it submit now; the submission is then
     *             multiplied by (float)(gamma * bpt_quality_share()) where the rule is
     *             asynchronous, by (float)gamma where it ignores quality, or is synchronous and has
     *             Q in gamma already. NULL with BPT_PAYLOAD_NONE */
    void (*weigh)(const bpt_update_inputs *in, double *gamma);

    /** Merges submissions into the global values. NULL with BPT_PAYLOAD_NONE. */
    void (*merge)(const bpt_merge *m);
} bpt_update_rule;

/** Q of an asynchronous update: the worker's over the mean of those of all that have submitted. So
 * their mean is 1, as the gammas sum to 1: where all are alike Q changes nothing, whatever its
 * size, and a single worker is not damped (ALGORITHMS 1.3, consequences).
 * @return above 0, at most m; exactly 1 where all are 1; 0 where that of @p worker is */
double bpt_quality_share(const bpt_update_inputs *in, uint32_t worker);

/** Asynchronous global weight update after BPT-CNN (ALGORITHMS 1.3, exponent as recalled; Q as a
 * share, as under all asynchronous rules of deltas):
 *     gamma_j = exp(k_j/(i-1)) / SUM_j' exp(k_j'/(i-1)),  1/m at the first update (i = 1)
 *     W <- W + gamma_j Q_j delta_j */
extern const bpt_update_rule bpt_rule_agwu;

/** The same, weighed by how many updates came in between and not by how many that is of all, so
 * that what is old counts less late in training too (ours; the 1/tau of staleness-aware SGD, Zhang
 * et al. 2016, made to sum to one):
 *     gamma_j = (1 / (1 + i-1-k_j)) / SUM_j' (1 / (1 + i-1-k_j')) */
extern const bpt_update_rule bpt_rule_agwu_lag;

/** The same without regard to age: gamma_j = 1/m. */
extern const bpt_update_rule bpt_rule_agwu_none;

/** Synchronous weighted average after BPT-CNN (ALGORITHMS 1.3), in its incremental writing:
 *     W <- W + SUM_j (Q_j / SUM_j' Q_j') delta_j,  equal weights where all Q are zero */
extern const bpt_update_rule bpt_rule_sgwu;

/** Asynchronous elastic averaging (EASGD, Zhang, Choromanska, LeCun 2015): workers train on by
 * themselves, each tied to the centre, which the global weights are, by a spring. With x_j what a
 * worker submits, its local weights, and c the centre until then
 *     d = alpha (x_j - c),   c <- c + d   (here),   x_j <- x_j - d   (the worker: bpt_easgd_pull())
 * so that but for its training x_j + c stays. Alpha is about 0.9 / m in the paper (recalled).
 * Neither age nor quality counts: what the one side adds the other takes. At a meeting every worker
 * goes on from the centre. */
extern const bpt_update_rule bpt_rule_easgd;

/** The worker's side of easgd. What comes back is the centre after d, c' = c + alpha (x - c), so
 * that x - c' = (1 - alpha) (x - c) and d = alpha / (1 - alpha) (x - c').
 * @param[in,out] local weights of the worker, which may have trained on since it pushed; shape [n]
 * @param pushed  x_j as it was submitted, shape [n]
 * @param centre  c', the answer, shape [n]; not that of a meeting
 * @param elasticity alpha */
void bpt_easgd_pull(float *local, const float *pushed, const float *centre, double elasticity,
                    size_t n);

/** Rounds without values: gradients are summed apart, while they are computed
 * (outer/exchange/reduction.h), and what the ranks tell each other here is how far they are. */
extern const bpt_update_rule bpt_rule_allreduce;

#endif
