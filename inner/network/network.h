/** @file inner/network/network.h
 * A model with memory and step graphs: what trains.
 *
 * Plan, reserve, run: bpt_network_create() plans and allocates everything; a step allocates nothing
 * of ours, though oneDNN takes a few small objects from the heap in each call. The same input gives
 * the same bits for any number of workers.
 *
 * A batch is pixels [N, C, H, W] (row-major floats; on a device that takes images, a bpt_images)
 * and labels int32 [N], both the caller's. A label of -1 marks a sample that is not there: it
 * counts for nothing. (On a GPU those that come before one that is there count in the statistics of
 * batch norms; a loader has the absent ones last.) Its pixels too must be finite numbers, since 0 *
 * NaN would reach the gradients.
 *
 * The model may be a part of one (inner/models/model_part.h). A tail is trained as a whole network
 * is, with the values of its border as input in place of pixels; what a head does instead, and what
 * is at the border, is in inner/network/network_border.h. Only whole networks evaluate.
 *
 * Activations and their gradients lie in memory as floats or as bfloat16: behind layers that
 * multiply (conv, fc), and behind others as their first input is. Pixels are floats on cores; on a
 * GPU they, and what comes of them before a product, are as all others. The loss takes floats.
 * Weights, their gradients, the optimiser's state, statistics and sums are floats (the kernels of
 * such layers read copies of the weights).
 *
 * On a device, what runs may also end with BPT_ENOMEM, BPT_EFULL (its memory is full) or
 * BPT_EBACKEND, where a function's errors do not name them.
 *
 * Threads: one at a time, the one that owns the pool. */
#ifndef BPT_INNER_NETWORK_H
#define BPT_INNER_NETWORK_H

#include "base/status.h"
#include "inner/loops/value_type.h"
#include "inner/models/model.h"
#include "inner/optimizers/optimizer.h"
#include "scheduler/pool.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_network bpt_network;
typedef struct bpt_device bpt_device; /* inner/device.h */

/** One step's outcome, summed over the samples that are there. */
typedef struct bpt_batch_result {
    double loss_sum;    /* of softmax cross-entropy, natural logarithm; where gradients are computed
                         * with second labels and smoothing, in an evaluation without either */
    uint64_t n_correct; /* of a sample with two labels the one with the larger part counts, the
                         * first where they are equal */
    uint64_t n_samples;
} bpt_batch_result;

typedef enum bpt_vector {
    BPT_VECTOR_WEIGHTS,
    BPT_VECTOR_GRADIENTS,
    BPT_VECTOR_STATE_0, /* of the optimiser, if it has as many: bpt_network_n_states() */
    BPT_VECTOR_STATE_1,
} bpt_vector;

/** Bytes that a network takes, by what they hold; SIZE_MAX where no size_t can tell. What the
 * description of its tasks and kernels takes is not counted: it grows with layers, and with the
 * chunks of a batch until there are some tens. */
typedef struct bpt_network_memory {
    size_t parameters;
    size_t gradients; /* of parameters */
    size_t state;     /* of the optimiser */
    /* What is needed at different times shares memory. Here a byte counts for activations if it
     * ever holds one, else for their gradients if it ever holds one of them, else for workspaces.
     */
    size_t activations, activation_gradients;
    size_t workspaces; /* partial sums of gradients, copies of weights, scratch of the workers */
    size_t total;
    size_t unshared; /* what activations, their gradients and their workspaces would take if each
                      * had memory of its own */
} bpt_network_memory;

/** Says what a network would take, and allocates none of it.
 * @param activations BPT_BF16 where bpt_cpu_bf16() is not BPT_BF16_NONE
 * @param n_workers of the pool that would run it
 * @return as bpt_network_create() */
bpt_status bpt_network_plan(const bpt_model *model, int64_t batch, bpt_value_type activations,
                            bpt_learning learning, unsigned n_workers, bpt_network_memory *memory);

/** @param model borrowed while the network lives; whole, or a part of one
 * @param batch  N, at least 1
 * @param activations as for bpt_network_plan()
 * @param pool   borrowed while the network lives
 * @param learning copied
 * @param[out] net caller owns, bpt_network_free(); weights, state and count of updates are zero
 * @return BPT_OK, BPT_ENOMEM (also where the machine has less than the plan), BPT_EFULL (the step
 *         has more tasks than a graph can hold), BPT_EUSAGE (or more edges; or a part is to clip
 *         the norm of the whole gradient), BPT_EBACKEND */
bpt_status bpt_network_create(const bpt_model *model, int64_t batch, bpt_value_type activations,
                              bpt_learning learning, bpt_pool *pool, bpt_network **net);

/** The same on a device. What it computes is the same up to rounding, but for batch norms of one
 * that the cores compute beside (inner/mixed/), which alone uses the pool. Costs,
 * cuts and tasks are of the processor's cores alone: a network on a device has none. Where cores
 * compute beside, bpt_network_hand_out() hands all parts out behind the backward pass.
 * @param device borrowed while the network lives; NULL: the processor's cores
 * @param model a whole one, if there is a device
 * @return likewise, and BPT_EUSAGE (the device has less memory than that takes) */
bpt_status bpt_network_create_on(bpt_device *device, const bpt_model *model, int64_t batch,
                                 bpt_value_type activations, bpt_learning learning, bpt_pool *pool,
                                 bpt_network **net);

/** A network that evaluates and nothing else: without gradients, updates and state, and with less
 * memory. @param model a whole one. @return as bpt_network_create() */
bpt_status bpt_network_create_forward(const bpt_model *model, int64_t batch,
                                      bpt_value_type activations, bpt_pool *pool,
                                      bpt_network **net);
bpt_status bpt_network_create_forward_on(bpt_device *device, const bpt_model *model, int64_t batch,
                                         bpt_value_type activations, bpt_pool *pool,
                                         bpt_network **net);
void bpt_network_free(bpt_network *net);

/** @return where it computes; NULL: on the processor's cores */
const bpt_device *bpt_network_device(const bpt_network *net);

/** @return whether its batches are bpt_images (base/images.h), as those of networks that were made
 * behind bpt_device_give_images() are */
bool bpt_network_takes_images(const bpt_network *net);

/** @return who computes a step where a device and the cores have it in common, for people; NULL: it
 * is one of them. Valid while the network lives */
const char *bpt_network_sharing(const bpt_network *net);

/** @return nanoseconds that the convolutions and products of a training step take by themselves, as
 * a device has measured them one by one when it chose how to compute them; 0 on the processor's
 * cores
 */
uint64_t bpt_network_products_ns(const bpt_network *net);

/** Says what a network that evaluates would take. @param model a whole one. @return as
 * bpt_network_plan() */
bpt_status bpt_network_plan_forward(const bpt_model *model, int64_t batch,
                                    bpt_value_type activations, unsigned n_workers,
                                    bpt_network_memory *memory);

/** @return how it learns; .optimizer is set */
bpt_learning bpt_network_learning(const bpt_network *net);

/** Names the random numbers (dropout) of the next training step or gradient. */
void bpt_network_set_draw(bpt_network *net, bpt_draw draw);

/** Gives samples of the next batch second labels, as images have that were mixed from two: the
 * target of sample i is (1 - parts[i]) * one_hot(its label) + parts[i] * one_hot(labels[i]). They
 * count in bpt_network_train() and bpt_network_gradient(), and for that one batch; an evaluation
 * takes them off and does not look at them.
 * @param labels shape [N], below the model's classes; -1: that sample has none. NULL: none has.
 *               Borrowed until that step has ended
 * @param parts  shape [N], 0 to 1; likewise. NULL if @p labels is */
void bpt_network_set_second(bpt_network *net, const int32_t *labels, const float *parts);

/** What a network says of one sample. Probabilities are those of softmax, 0 to 1. */
typedef struct bpt_answer {
    int32_t predicted;        /* the likeliest class; of several the one with the least number */
    double probability;       /* of that class */
    double label_probability; /* of the sample's label: exp(-loss) of the sample */
} bpt_answer;

/** Has evaluations tell what they say of each sample, from the next one on. Of a network on the
 * processor's cores.
 * @param answers shape [N], one for each sample that is there, others are not written; borrowed
 *                while the network lives. NULL: not told */
void bpt_network_tell_answers(bpt_network *net, bpt_answer *answers);

/** Says which input the step after the next one will be given: a device copies it while the next
 * one computes. A hint, and nothing on the processor's cores.
 * @param input as it will be given then; what is there must neither change nor be freed until then.
 *              The hint ends with the input that is given after the next one, whatever it is. NULL:
 *              not known
 */
void bpt_network_set_next(bpt_network *net, const void *input);

/** Forward, loss, backward, clipping, update.
 * @param denominator what the summed gradient is divided by, e.g. the batch size
 * @return BPT_OK, BPT_ENUMERIC (the loss is not finite: the weights have stayed, and the layer
 * where it began is named; or a gradient, a norm of gradients or a new weight is not: names where
 * that began, and other weights may have changed), BPT_EDATA (a label is not below the model's
 * classes: the weights have stayed), BPT_EBACKEND */
bpt_status bpt_network_train(bpt_network *net, const void *input, const int32_t *labels, float rate,
                             float denominator, bpt_batch_result *result);

/** Forward, loss, backward; the gradients can then be read. Weights stay.
 * @return BPT_OK, BPT_ENUMERIC (likewise for the loss and the gradients), BPT_EDATA, BPT_EBACKEND
 */
bpt_status bpt_network_gradient(bpt_network *net, const void *input, const int32_t *labels,
                                float denominator, bpt_batch_result *result);

/** Parts of the gradients, which are whole segments each, for whoever wants them while others are
 * computed. */
typedef struct bpt_gradient_parts {
    uint32_t n;          /* at least 1 */
    const size_t *begin; /* of each, in elements of the part of the vector that learns: begins of
                          * segments, ascending from 0; shape [n + 1], the last is the number of
                          * elements */
    float *flat;         /* where they are put, in canonical order; shape [elements], as of
                          * bpt_network_get_learned() */
    void (*take)(void *context, uint32_t part); /* called as soon as a part is there, in any order:
                                                 * by a worker, on a device by the thread that runs
                                                 * the network; must not wait */
    void *context;
} bpt_gradient_parts;

/** From now on bpt_network_gradient(), or bpt_network_backward(), also hands out the gradients,
 * part by part; of a run that fails, some or none. Costs that were expected or measured before are
 * kept; that of handing out is not in them. Between runs, once.
 * @param parts .begin is only read by this call; .flat and .context are borrowed while the network
 *              lives
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (too many edges), BPT_EFULL (of a device), BPT_EBACKEND */
bpt_status bpt_network_hand_out(bpt_network *net, const bpt_gradient_parts *parts);

/** Clipping and update: changes the weights from the gradients, as they are after
 * bpt_network_gradient() or bpt_network_set(). @return BPT_OK, BPT_ENUMERIC (a gradient, a norm
 * or a new weight is not finite; others may have changed) */
bpt_status bpt_network_apply(bpt_network *net, float rate);

/** Forward and loss, of a whole model.
 * @return BPT_OK, BPT_ENUMERIC (the loss is not finite; a NaN that a ReLU or a maximum drops on its
 *         way there is not noticed), BPT_EDATA, BPT_EBACKEND */
bpt_status bpt_network_evaluate(bpt_network *net, const void *input, const int32_t *labels,
                                bpt_batch_result *result);

/** Reads or writes a vector in canonical order, in parallel. Gradients and states of layers that
 * are frozen are zeros, and what is set for them is not read.
 * @param flat shape [segments.n_elements], aligned to 4 bytes
 * @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_network_get(bpt_network *net, bpt_vector which, float *flat);
bpt_status bpt_network_set(bpt_network *net, bpt_vector which, const float *flat);

/** The same of the part that learns, which is the end of the vector.
 * @param flat shape [bpt_model_learned_elements()] */
bpt_status bpt_network_get_learned(bpt_network *net, bpt_vector which, float *flat);
bpt_status bpt_network_set_learned(bpt_network *net, bpt_vector which, const float *flat);

/** @return state vectors of the optimiser: BPT_VECTOR_STATE_0 and so on */
size_t bpt_network_n_states(const bpt_network *net);

/** Updates made so far, which some optimisers count by; part of their state. */
uint64_t bpt_network_updates(const bpt_network *net);
void bpt_network_set_updates(bpt_network *net, uint64_t n);

/** @return what the network takes: as planned; of one on a device, of the device's memory */
bpt_network_memory bpt_network_memory_of(const bpt_network *net);

/** @return what one on a device takes of the host's memory: for samples that the cores have. Else
 * zeros */
bpt_network_memory bpt_network_host_memory_of(const bpt_network *net);

/** @return measurements of the last run that trained, computed gradients or evaluated; of a head's
 * step, of both halves. Updates by bpt_network_apply() are not in it */
bpt_run_stats bpt_network_last_run(const bpt_network *net);

/** @return nanoseconds of the longest path through the tasks of that run, by their measured times;
 * of a head, the sum of those of both halves. There was a run, of a head both halves of it, and no
 * bpt_network_hand_out() since */
uint64_t bpt_network_critical_path(const bpt_network *net);

/** What the forward and backward passes of each layer took in the last bpt_network_train(), which
 * no other run has followed: of the step's time as much as their tasks have of all tasks' time. A
 * layer that does the work of others has their time too.
 * @param[out] seconds shape [n_layers] */
void bpt_network_layer_times(const bpt_network *net, double *seconds);

/** Adds to a table what the parts of convolutions took in the last bpt_network_train(), as this
 * network has cut them: of each step what its largest part took, by the time of all of them and
 * what each computes. Between runs.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_network_note_costs(const bpt_network *net, bpt_cost_table *costs);

/** @return steps of convolutions that are cut otherwise than into tiles, of the training step's */
size_t bpt_network_n_cuts(const bpt_network *net);

/** @return nanoseconds that a task of this label and kind should take, 0 if unknown */
typedef uint64_t (*bpt_cost_of)(void *context, const char *label, const char *kind);

/** Tells what tasks should take (bpt_network_visit_times() says it of another network of the same
 * shapes on the same machine), so that the first step is planned by it already. A graph all of
 * whose tasks are known keeps these figures; another one takes those of its first runs. Changes the
 * order of tasks and no result. Between runs.
 * @param cost asked for every task, and not kept */
void bpt_network_expect(bpt_network *net, bpt_cost_of cost, void *context);

/** Told for each pair of layer label and task kind. @param ns summed time of its @p n_tasks */
typedef void (*bpt_visit_times)(void *context, const char *label, const char *kind,
                                unsigned n_tasks, uint64_t ns);

/** Time of the last bpt_network_train() by kind of task, in the order of the step; for reports. */
void bpt_network_visit_times(const bpt_network *net, bpt_visit_times visit, void *context);

#endif
