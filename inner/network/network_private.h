/** @file inner/network/network_private.h
 * What the parts of a network share: network.c (life), network_run.c (runs), network_plan.c,
 * network_memory.c, network_graphs.c, network_costs.c, network_cuts.c, network_border.c,
 * network_device.c, loss.c, update.c, norms.c, transfer.c, finite.c. */
#ifndef BPT_INNER_NETWORK_PRIVATE_H
#define BPT_INNER_NETWORK_PRIVATE_H

#include "inner/device.h"
#include "inner/network/network.h"
#include "inner/network/network_border.h"
#include "inner/step/builder.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum bpt_graph_role {
    BPT_GRAPH_FORWARD,  /* of a head: the first half of a step */
    BPT_GRAPH_TRAIN,    /* a step; of a head its second half */
    BPT_GRAPH_GRADIENT, /* likewise */
    BPT_GRAPH_APPLY,
    BPT_GRAPH_EVALUATE,
    BPT_GRAPH_EXPORT, /* of what learns */
    BPT_GRAPH_IMPORT,
    BPT_GRAPH_EXPORT_FROZEN,
    BPT_GRAPH_IMPORT_FROZEN,
    BPT_N_GRAPHS,
} bpt_graph_role;

/** Outcome of one chunk; a cache line of its own, since chunks end on different threads. */
typedef struct bpt_chunk_result {
    _Alignas(64) bpt_batch_result result;
} bpt_chunk_result;

/** Sums of squares. */
typedef struct bpt_squares {
    double weights, gradient;
} bpt_squares;

/** Tasks of the plan that follow each other. */
typedef struct bpt_task_range {
    uint32_t first, n;
} bpt_task_range;

/** Runs of a graph that its tasks' costs are taken from. */
enum { BPT__LEARNING_RUNS = 2 };

struct bpt_network {
    const bpt_model *model;
    bpt_pool *pool;
    bpt_device *device;            /* NULL: the processor's cores, and so is the next */
    bpt_device_network *on_device; /* then of the fields below those count alone that say so */
    const void *next;              /* of a device: bpt_network_set_next() */
    bool takes_images;             /* likewise: bpt_network_takes_images() */
    bpt_cpu *cpu;
    bpt_blocks blocks;
    bpt_builder builder;
    bpt_learning learning; /* .optimizer is set; on a device too */
    bool wants_norms;      /* an update needs norms: it follows the sums as a task of its own */
    bpt_squares *squares;  /* of each segment; NULL unless it wants norms; shape [segments] */
    bpt_activation *activations; /* [0] the input, [1 + i] output of layer i; [n_layers + 1] */
    bpt_chunk_result *chunks;    /* shape [n_chunks] */
    bpt_graph *graphs[BPT_N_GRAPHS];
    unsigned runs_learned[BPT_N_GRAPHS]; /* of BPT__LEARNING_RUNS, that have told how long the
                                          * tasks take; all if bpt_network_expect() has */
    size_t *forward_end;      /* tasks of the plan up to each layer's forward pass; [n_layers] */
    bpt_activation border;    /* of a part: inner/network/network_border.h */
    uint32_t *exports;        /* task of the plan that exports a segment; shape [segments] */
    bpt_task_range *reduces;  /* those that sum its gradient, of a frozen one none; [segments]; NULL
                               * without gradients */
    bpt_gradient_parts parts; /* .take is NULL: none are handed out; on a device too */
    struct {
        bpt_border_take take; /* NULL: nobody wants it as soon as it is there */
        void *context;
        uint32_t task;         /* of the gradient graph */
    } border_taker;            /* bpt_network_hand_border() */
    bpt_network_memory memory; /* on a device too, and so are those below up to updates */
    bpt_run_stats last_run;
    bpt_graph_role last_role; /* of that run; of a head, of its second half. Before the first one
                               * BPT_GRAPH_FORWARD, which it never is later */
    /* Set before a run, read by its tasks. */
    bpt_step_values step;
    struct {
        const int32_t *labels; /* NULL: no sample has one; shape [N] */
        const float *parts;    /* shape [N] */
    } second;                  /* the caller's, of one batch: bpt_network_set_second() */
    bpt_answer *answers;       /* the caller's, shape [N]: bpt_network_tell_answers(); NULL: none */
    uint64_t updates;          /* the one of this run included */
    float clip_scale;          /* set by a task; 1 without clipping */
    /* set by a task that has met one that is not finite */
    atomic_bool bad_border, bad_gradient, bad_weight;
};

/* ---- on a device (network_device.c): as the functions of inner/network/network.h ---- */

bpt_status bpt__device_run(bpt_network *net, bpt_device_work work, const void *input,
                           const int32_t *labels, bpt_batch_result *result);
bpt_status bpt__device_hand_out(bpt_network *net, const bpt_gradient_parts *parts);
void bpt__device_layer_times(const bpt_network *net, double *seconds);
void bpt__device_visit_times(const bpt_network *net, bpt_visit_times visit, void *context);

/* ---- on the cores ---- */

/** Plans everything: kernels are described and tasks listed, the sizes of all blocks are known.
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL (too many tasks), BPT_EBACKEND */
bpt_status bpt__network_plan(bpt_network *net);

/** Gives buffers their places. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__network_place(bpt_network *net);

/** Sums up what was planned, into net->memory. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__network_count(bpt_network *net);

/** @return the phases whose tasks a graph holds */
unsigned bpt__graph_phases(const bpt_network *net, bpt_graph_role role);

/** @return the phases that have a batch between them, of which a graph holds all or some: buffers
 * keep what they hold from the first to the last task of these. 0: a graph that has no batch */
unsigned bpt__batch_phases(const bpt_network *net, bpt_graph_role role);

/** @return whether the network has a graph */
bool bpt__graph_exists(const bpt_network *net, bpt_graph_role role);

/** Makes one of the graphs from the planned tasks. @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (too many
 * edges) */
bpt_status bpt__network_graph(bpt_network *net, bpt_graph_role role);

/** Tells a gradient graph that hands out parts what its tasks should take, as far as the graphs of
 * gradients and exports have been told or have measured it.
 * @param exports the ids of the exports in it, shape [segments]
 * @param[out] runs_learned of BPT__LEARNING_RUNS, that have told all of that */
void bpt__network_keep_costs(const bpt_network *net, bpt_graph *handing, const uint32_t *exports,
                             unsigned *runs_learned);

/** Called for a task of a training step. @param ns that it took in the last one */
typedef void (*bpt_visit_task)(void *context, bpt_task_info info, uint64_t ns);

/** Calls @p visit for all tasks of a training step, in the order of the plan. */
void bpt__visit_step(const bpt_network *net, bpt_visit_task visit, void *context);

/** Names the blocks that transfers of what learns read and write. @return BPT_OK, BPT_EBACKEND */
bpt_status bpt__bind_transfer(bpt_network *net, bpt_vector which, float *flat);

/** Plans softmax cross-entropy on the logits and their gradient. */
bpt_status bpt__plan_loss(bpt_network *net, bpt_activation *logits);

/** Plans the border of a head, into net->border: in place of a loss.
 * @param out output of the last layer */
bpt_status bpt__plan_head_border(bpt_network *net, bpt_activation *out);

/** Plans that of a tail, whose backward pass is planned. */
bpt_status bpt__plan_tail_border(bpt_network *net);

/** The outcome of a batch, whose loss is computed. */
void bpt__sum_chunks(const bpt_network *net, bpt_batch_result *result);

/** Where a tail's gradient at the border is handed out, lets what leads to it go first; after costs
 * were set. */
void bpt__hurry_to_border(bpt_network *net);

/** Plans the sums of the chunks' gradients and the updates. */
bpt_status bpt__plan_updates(bpt_network *net);

/** Plans the sums of squares of a segment, into net->squares.
 * @param parts of its ranges, in order; shape [n], kept
 * @param measured tasks that set them
 * @param[out] known task after which the sums are there */
bpt_status bpt__plan_squares(bpt_network *net, size_t segment, const bpt_squares *parts, size_t n,
                             bpt_deps measured, bpt_deps *known);

/** Plans net->clip_scale, from the squares of all segments.
 * @param after tasks after which these are there */
bpt_status bpt__plan_clip(bpt_network *net, bpt_deps after, bpt_deps *known);

/** Plans the conversions between native and flat vectors. */
bpt_status bpt__plan_transfers(bpt_network *net);

/** @return whether @p x, shape [n], holds neither infinity nor NaN */
bool bpt__all_finite(const float *x, size_t n);

/** The same of values in memory. */
bool bpt__is_finite(const bpt_network *net, bpt_ref where, const bpt_layout *layout);

/** After a run that ended at a loss that is not finite, before any weight was changed.
 * @return BPT_ENUMERIC (names the input, or the first layer whose output is not finite), or an
 * error of a task */
bpt_status bpt__trace_loss(bpt_network *net, bpt_graph_role role);

/** After the forward pass of a head: whether the values of its border are finite.
 * @return BPT_OK, BPT_ENUMERIC (likewise), or an error of a task */
bpt_status bpt__check_border(bpt_network *net);

/** After a run on a batch: whether the gradients that it has met and the weights that it has
 * written are finite. oneDNN's ReLU and maximum drop NaNs, so that the loss alone would not tell.
 * @return BPT_OK, BPT_ENUMERIC (names the input, the first layer whose output is not finite, or
 * else the last with such gradients or weights), or an error of a task */
bpt_status bpt__check_batch(bpt_network *net, bpt_graph_role role);

/** The same after an update alone. */
bpt_status bpt__check_updates(const bpt_network *net);

#endif
