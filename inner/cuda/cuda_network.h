/** @file inner/cuda/cuda_network.h
 * A network on a GPU, and how its layers plan their part of a step: private to inner/cuda/.
 *
 * A step is a list of tasks in the order in which they run on one stream; each puts kernels on it.
 * Planning walks through the layers forward, the loss, and back, reserves buffers and adds tasks.
 * Buffers that are not in use at the same time share memory (inner/memory/sharing.h). A work
 * (inner/device.h) is the tasks of some phases; it is captured as one CUDA graph and replayed from
 * then on, or as several where gradients are handed out (cuda_hand_out.h).
 *
 * Nothing works in place: a layer writes to buffers of its own, and reads others for as long as it
 * wants to.
 *
 * Threads: one, that which owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_NETWORK_H
#define BPT_INNER_CUDA_CUDA_NETWORK_H

#include "inner/cuda/cuda_input.h"
#include "inner/cuda/cuda_library.h"
#include "inner/cuda/cuda_step.h"
#include "inner/cuda/cuda_transfer.h"
#include "inner/cuda/cuda_update.h"
#include "inner/device.h"

/** An open GPU. */
typedef struct bpt_cuda_device {
    bpt_device base; /* first */
    int index;
    char card[128]; /* its name */
    bpt_cuda_library *library;
} bpt_cuda_device;

/** When a task runs; bits. */
typedef enum bpt_cuda_phase {
    BPT_CUDA_FORWARD = 1,
    BPT_CUDA_TRAINING = 2, /* what a forward pass does besides, in training and in evaluation */
    BPT_CUDA_INFERENCE = 4,
    BPT_CUDA_LOSS = 8,
    BPT_CUDA_BACKWARD = 16,
    BPT_CUDA_CHECK = 32, /* looks at gradients that are not used up */
    BPT_CUDA_UPDATE = 64,
} bpt_cuda_phase;

/** Number of a buffer from 1; 0: none. */
typedef uint32_t bpt_cuda_buffer;

typedef enum bpt_cuda_buffer_kind {
    BPT_CUDA_VALUES, /* in the order in which a byte that is shared counts */
    BPT_CUDA_GRADIENTS,
    BPT_CUDA_WORKSPACE,
} bpt_cuda_buffer_kind;

typedef struct bpt_cuda_place {
    bpt_cuda_buffer_kind kind;
    size_t bytes, offset; /* in the block that buffers share */
    bool used;
} bpt_cuda_place;

/** Output of a layer, or the network's input, as one of its readers sees it: [N, H, W, row]. */
typedef struct bpt_cuda_activation {
    bpt_shape shape;
    int64_t row; /* channels of a row: shape.c, or more of which those above are 0 */
    bpt_value_type type;
    bool wants_grad; /* false for the network's input, and for what layers make that are frozen */
    bpt_cuda_buffer value;
    bpt_cuda_buffer grad; /* reserved by the backward pass of whoever reads it */
} bpt_cuda_activation;

/** Puts a task's work on a stream. */
typedef bpt_status (*bpt_cuda_task_fn)(const bpt_device_network *net, const void *arg,
                                       bpt_cuda_stream stream);

typedef struct bpt_cuda_task {
    bpt_cuda_phase phase;
    bpt_cuda_task_fn fn;
    const void *arg; /* lives as long as the network */
    const char *label, *kind;
    const uint32_t *places; /* of the buffers that it reads and writes, each once; [n_places] */
    size_t n_places;
    uint64_t ns; /* in the step that was measured */
} bpt_cuda_task;

/** How the canonical values of a segment lie in the vectors of a device: [K, C, taps] as [K, taps,
 * padded]. */
typedef struct bpt_cuda_turn {
    int64_t k, c, taps, padded; /* taps 0: as they are */
} bpt_cuda_turn;

/** What the host writes before a run, in one piece; labels and so on follow. */
typedef struct bpt_cuda_given {
    bpt_cuda_step step;
    int32_t labels[]; /* shape [3][N]: labels, second labels, and parts (floats) */
} bpt_cuda_given;

typedef struct bpt_cuda_captured bpt_cuda_captured; /* cuda_capture.h */
typedef struct bpt_cuda_hand_out bpt_cuda_hand_out; /* cuda_hand_out.h */

struct bpt_device_network {
    bpt_cuda_device *device;
    const bpt_model *model;
    int64_t batch;
    bpt_value_type type; /* of activations */
    bpt_learning learning;
    bool forward_only;
    bool frozen; /* while layers are planned: this one does not learn, nor any before it, and is
                  * computed in training as in evaluation */
    bpt_cuda_input input;

    /* the plan */
    bpt_cuda_task *tasks; /* shape [n_tasks] */
    size_t n_tasks, tasks_capacity;
    size_t *forward_end;              /* of each layer: tasks up to its forward pass */
    size_t *backward_end;             /* of each layer: tasks up to its backward pass */
    bpt_cuda_activation *activations; /* [0] the input, [1 + i] output of layer i */
    bpt_cuda_place *places;           /* shape [n_places], of buffer 1 and so on */
    size_t n_places, places_capacity;
    void **objects; /* what tasks are given; shape [n_objects] */
    size_t n_objects, objects_capacity;
    bpt_cuda_conv **convs;
    size_t n_convs, convs_capacity;
    bpt_cuda_product **products;
    size_t n_products, products_capacity;
    bpt_cuda_segment *segments; /* shape [model->segments.n] */
    bpt_cuda_turn *turns;       /* likewise */
    size_t n_floats;            /* of a vector */

    /* memory of the GPU */
    char *block; /* that buffers share */
    bpt_cuda_vectors vectors;
    float *canonical; /* a vector in canonical order, on its way; shape [n_elements] */
    void *workspace;  /* of cuDNN and cuBLASLt */
    bpt_cuda_given *given;
    bpt_cuda_outcome *outcome;
    bpt_cuda_update *update;
    bpt_cuda_transfer *transfer; /* between canonical and the vectors */

    /* and of the host */
    bpt_cuda_given *host_given;
    bpt_cuda_outcome *host_outcome;

    bpt_cuda_stream stream;
    bpt_cuda_feed *feed;
    bpt_cuda_captured *captured; /* shape [BPT_DEVICE_N_WORKS] */
    bpt_cuda_hand_out *hand_out; /* NULL: gradients stay until somebody asks */
    bpt_network_memory memory;
};

/* ---- planning (cuda_plan.c). @return BPT_OK, BPT_ENOMEM ---- */

/** Memory that lives as long as the network, zeroed; through the macro, which takes the size of an
 * element from the pointer: BPT_CUDA_NEW(net, count, &pointer). */
bpt_status bpt__cuda_object(bpt_device_network *net, size_t count, size_t size, void **out);
#define BPT_CUDA_NEW(net, count, out)                                                              \
    bpt__cuda_object((net), (count), sizeof **(out), (void **)(out))

bpt_status bpt__cuda_reserve(bpt_device_network *net, bpt_cuda_buffer_kind kind, size_t bytes,
                             bpt_cuda_buffer *out);

/** Reserves the values of an activation whose shape, row and type are set, or a gradient of it. */
bpt_status bpt__cuda_reserve_values(bpt_device_network *net, bpt_cuda_activation *a);
bpt_status bpt__cuda_reserve_grad(bpt_device_network *net, const bpt_cuda_activation *a,
                                  bpt_cuda_buffer *grad);

/** Adds a task at the end. @param touches what it reads and writes; 0 is passed over */
bpt_status bpt__cuda_task(bpt_device_network *net, bpt_cuda_phase phase, bpt_cuda_task_fn fn,
                          const void *arg, const char *label, const char *kind,
                          const bpt_cuda_buffer *touches, size_t n_touches);
#define BPT_CUDA_TASK(net, phase, fn, arg, label, kind, ...)                                       \
    bpt__cuda_task((net), (phase), (fn), (arg), (label), (kind),                                   \
                   (const bpt_cuda_buffer[]){__VA_ARGS__},                                         \
                   sizeof((const bpt_cuda_buffer[]){__VA_ARGS__}) / sizeof(bpt_cuda_buffer))

/** Takes over a kernel, to be freed with the network. It is freed at once if that fails. */
bpt_status bpt__cuda_keep_conv(bpt_device_network *net, bpt_cuda_conv *conv);
bpt_status bpt__cuda_keep_product(bpt_device_network *net, bpt_cuda_product *product);

/** Gives the buffers their places, and sums up what the network takes. */
bpt_status bpt__cuda_place_buffers(bpt_device_network *net);

/** @return the phases of a work's tasks */
unsigned bpt__cuda_phases(bpt_device_work work);

/** @return rows of an activation: N * H * W */
static inline int64_t bpt__cuda_rows(const bpt_device_network *net, const bpt_cuda_activation *a) {
    return net->batch * a->shape.h * a->shape.w;
}

/** @return values of an activation, those that are padding included */
static inline int64_t bpt__cuda_values(const bpt_device_network *net,
                                       const bpt_cuda_activation *a) {
    return bpt__cuda_rows(net, a) * a->row;
}

/** @return whether the layer that is planned has gradients: of its weights, and of its output */
static inline bool bpt__cuda_learns(const bpt_device_network *net) {
    return !net->forward_only && !net->frozen;
}

/* ---- while tasks run ---- */

/** @return where a buffer is; NULL of 0 */
static inline void *bpt__cuda_at(const bpt_device_network *net, bpt_cuda_buffer buffer) {
    return buffer ? net->block + net->places[buffer - 1].offset : NULL;
}

/** @return where a segment's gradients are; of its weights as floats */
static inline float *bpt__cuda_gradients(const bpt_device_network *net, size_t segment) {
    return net->vectors.gradients + net->segments[segment].begin;
}

static inline float *bpt__cuda_floats(const bpt_device_network *net, size_t segment) {
    return net->vectors.weights + net->segments[segment].begin;
}

/** @return a segment's weights as products want them: of the type of activations */
static inline const void *bpt__cuda_weights(const bpt_device_network *net, size_t segment) {
    if (net->type == BPT_BF16) return net->vectors.copies + net->segments[segment].begin;
    return bpt__cuda_floats(net, segment);
}

/* ---- layers (cuda_layers.c and cuda_layer_*.c) ---- */

/** What a kind of layer does here; as in inner/layers/layer.h, on a whole batch. */
typedef struct bpt_cuda_layer_kind {
    const bpt_layer_kind *kind;

    /** Plans the forward pass. @param in views, shape [n_inputs], and behind them the other input
     * of an add that the layer does too
     * @param[out] out zeroed; @param[out] state for plan_backward(), may be left NULL */
    bpt_status (*plan_forward)(bpt_device_network *net, const bpt_layer *l,
                               bpt_cuda_activation *const *in, bpt_cuda_activation *out,
                               void **state);

    /** Plans the backward pass: from out->grad to the grad of each input that wants it, which it
     * reserves, and to the gradients of its weights. */
    bpt_status (*plan_backward)(bpt_device_network *net, const bpt_layer *l,
                                bpt_cuda_activation *const *in, const bpt_cuda_activation *out,
                                void *state);
} bpt_cuda_layer_kind;

extern const bpt_cuda_layer_kind bpt_cuda_layer_add;
extern const bpt_cuda_layer_kind bpt_cuda_layer_avgpool;
extern const bpt_cuda_layer_kind bpt_cuda_layer_batchnorm;
extern const bpt_cuda_layer_kind bpt_cuda_layer_concat;
extern const bpt_cuda_layer_kind bpt_cuda_layer_conv;
extern const bpt_cuda_layer_kind bpt_cuda_layer_dropout;
extern const bpt_cuda_layer_kind bpt_cuda_layer_fc;
extern const bpt_cuda_layer_kind bpt_cuda_layer_global_avgpool;
extern const bpt_cuda_layer_kind bpt_cuda_layer_lrn;
extern const bpt_cuda_layer_kind bpt_cuda_layer_maxpool;
extern const bpt_cuda_layer_kind bpt_cuda_layer_pad_channels;
extern const bpt_cuda_layer_kind bpt_cuda_layer_relu;

/** Plans all: input, layers, loss, backward passes, update.
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
bpt_status bpt__cuda_plan_layers(bpt_device_network *net);

#endif
