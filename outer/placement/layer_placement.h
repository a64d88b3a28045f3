/** @file outer/placement/layer_placement.h
 * Which layers are computed at the server that holds their weights: pure rules, after RALP (Park et
 * al. 2019; ALGORITHMS section 2, whose formulas are derived).
 *
 * Classically every worker computes all layers, sends all gradients and gets all weights. Layers
 * behind a border may be placed at one server instead: workers send it the border's activations and
 * the labels, and get the gradient of the activations; the weights of these layers are on no wire.
 * That pays where weights outweigh activations, as in large fully connected layers, and where the
 * server can compute them for all workers. Unlike RALP's, which is a machine of its own, the
 * server is one of the workers; every worker hosts an even shard of the weights, and what stays on
 * a rank is on no wire.
 *
 * Numbers only: nothing here knows networks. A cut is the index of the last layer that workers
 * compute. Bytes are those of a step of all workers, both ways together.
 *
 * Threads: pure functions. */
#ifndef BPT_OUTER_LAYER_PLACEMENT_H
#define BPT_OUTER_LAYER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPT_PLACEMENT_NONE SIZE_MAX /* a cut: all layers are computed by the workers */

enum { BPT_PLACEMENT_REASON_SIZE = 200 };

/** A layer, in the order of computation. */
typedef struct bpt_placed_layer {
    const char *name;    /* borrowed */
    uint64_t parameters; /* floats that an exchange carries for it */
    uint64_t values;     /* of its output, a sample */
    bool border;         /* whether the model may be cut behind it */
    double worker_s;     /* its forward and backward passes on the slowest worker, for a worker's
                          * batch */
    double server_s;     /* likewise on the server, for the batch of one worker */
} bpt_placed_layer;

/** What is to be placed, and where. */
typedef struct bpt_placement_job {
    const bpt_placed_layer *layers; /* shape [n_layers] */
    size_t n_layers;
    uint32_t n_workers;          /* at least 1, the server included */
    uint32_t batch;              /* samples of a worker's step, at least 1 */
    uint32_t steps_per_exchange; /* of weights or gradients: 1 where each step has one */
    uint32_t value_bytes;        /* of an activation at the border: 4, or 2 of bfloat16 */
    uint32_t label_bytes;        /* of a sample */
    uint32_t copies;     /* floats that the server has for each parameter that it computes: weight,
                          * gradient, partial gradient, state */
    bool overlaps;       /* asynchronous: a worker waits for its own border, and for nothing else */
    double bytes_per_s;  /* of a link, each way, > 0 */
    double server_bytes; /* memory that the server has for what is placed there */
} bpt_placement_job;

/** @return bytes that a step puts on wires:
 *     2 (n-1) s P / k + (n-1) b (2 a A + l)
 * with n workers, s = 4, P the parameters of the layers up to the cut (of all without one), k steps
 * an exchange, b samples, A values at the border (none without one) of a bytes, and l bytes of a
 * label. Of a step on average if k > 1. */
double bpt_placement_bytes(const bpt_placement_job *job, size_t cut);

/** @return bytes that pass through the busiest link, the server's, one way after the other:
 *     2 (n-1)/n s P / k + (n-1) b (2 a A + l) */
double bpt_placement_link_bytes(const bpt_placement_job *job, size_t cut);

/** @return seconds that a step should take:
 *     in step   worker + link + n server, at most: a part of the server's work is done while
 *               workers go back through their layers
 *     overlaps  the largest of what a worker does for itself (its part, the way of its border to
 * the server and back, the server's part of it), n server, and link with the summed times of the
 * layers on each side of the cut. The classic plan has no server time: an update costs every plan
 * the same. */
double bpt_placement_seconds(const bpt_placement_job *job, size_t cut);

/** @return bytes of memory that layers behind a cut take at the server: copies of parameters, and
 * values of all workers' samples with their gradients, the border's too */
double bpt_placement_memory(const bpt_placement_job *job, size_t cut);

/** A plan, and why. */
typedef struct bpt_placement {
    size_t cut; /* or BPT_PLACEMENT_NONE */
    double bytes, seconds;
    double classic_bytes, classic_seconds;
    char reason[BPT_PLACEMENT_REASON_SIZE]; /* "fc6: 8.9 times fewer bytes, 2.1 times as fast as
                                             * without"; names the first layer at the server */
} bpt_placement;

/** Chooses the cut of least seconds, of those that put no more bytes on wires than the classic plan
 * and that the server has the memory for; of equal ones the last. None unless that is less than
 * nine tenths of the classic plan's: times are measured, and what is gained has to be worth a
 * server. Bytes are counted: where weights do not outweigh the border, a rank that was held up
 * while it was measured makes no server of another. */
bpt_placement bpt_placement_choose(const bpt_placement_job *job);

#endif
