/* The life of a network on a GPU: its vectors, its memory, its end. */
#include "inner/cuda/cuda_network.h"

#include "base/memory.h"
#include "inner/cuda/cuda_capture.h"
#include "inner/cuda/cuda_hand_out.h"
#include "inner/cuda/cuda_network_life.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- vectors ---- */

/* Segments begin with a line of the GPU's cache, which is more than any kernel's vectors need. */
enum { SEGMENT_FLOATS = 64 };

static void lay_segments(bpt_device_network *net) {
    const bpt_segments *segments = &net->model->segments;
    const size_t n_frozen = bpt_model_frozen_segments(net->model);
    for (size_t i = 0; i < segments->n; i++) {
        const bpt_segment_role *role = &segments->items[i].role;
        const bpt_cuda_turn *turn = &net->turns[i];
        bpt_cuda_segment *s = &net->segments[i];
        s->begin = (int64_t)net->n_floats;
        s->count =
            turn->taps ? turn->k * turn->taps * turn->padded : (int64_t)segments->items[i].count;
        s->running = role->running;
        s->decays = role->decays;
        s->frozen = i < n_frozen;
        s->has_copy = net->type == BPT_BF16 && segments->items[i].n_dims > 1;
        net->n_floats += ((size_t)s->count + SEGMENT_FLOATS - 1) / SEGMENT_FLOATS * SEGMENT_FLOATS;
    }
}

/* Of segments that are laid out. @param[out] orders shape [segments] */
static void find_orders(const bpt_device_network *net, bpt_cuda_order *orders) {
    for (size_t i = 0; i < net->model->segments.n; i++) {
        const bpt_segment *segment = &net->model->segments.items[i];
        const bpt_cuda_turn *turn = &net->turns[i];
        orders[i] = (bpt_cuda_order){
            .canonical = (int64_t)segment->offset,
            .native = net->segments[i].begin,
            .count = net->segments[i].count,
            .c = turn->c,
            .taps = turn->taps,
            .padded = turn->padded,
        };
    }
}

static bpt_status create_transfer(bpt_device_network *net) {
    bpt_cuda_order *orders;
    BPT_TRY(BPT_NEW("places of segments", net->model->segments.n, &orders));
    find_orders(net, orders);
    const bpt_status status =
        bpt_cuda_transfer_create(orders, net->model->segments.n, &net->transfer);
    bpt_free(orders);
    return status;
}

static size_t n_states(const bpt_device_network *net) {
    return net->forward_only ? 0 : net->learning.optimizer->n_states(&net->learning);
}

static void count_memory(bpt_device_network *net) {
    bpt_network_memory *m = &net->memory;
    const size_t vector = net->n_floats * sizeof(float);
    const size_t copies = net->type == BPT_BF16 ? net->n_floats * sizeof(bpt_bf16) : 0;
    const size_t more = copies + net->model->segments.n_elements * sizeof(float) +
                        bpt_cuda_library_workspace(net->device->library) +
                        bpt_cuda_feed_bytes(net->input.bytes) + bpt_cuda_given_bytes(net) +
                        sizeof *net->outcome;
    m->parameters = vector;
    m->gradients = net->forward_only ? 0 : vector;
    m->state = n_states(net) * vector;
    m->workspaces += more;
    m->total += m->parameters + m->gradients + m->state + more;
}

/* ---- memory ---- */

/* @param n_fit as of bpt_cuda_hint_full() */
static bpt_status fail_full(const bpt_device_network *net, const char *why, uint64_t n_fit) {
    const char *s = net->batch == 1 ? "" : "s", *verb = net->batch == 1 ? "needs" : "need";
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%" PRId64 " sample%s a step %s %s", net->batch, s, verb, why);
    bpt_cuda_hint_full(n_fit);
    return status;
}

static bpt_status fail_measuring(const bpt_device_network *net) {
    char why[BPT_ERROR_TEXT_SIZE];
    snprintf(why, sizeof why,
             "more memory than %s has free: a layer could not even be measured by itself",
             net->device->base.name);
    return fail_full(net, why, 0);
}

/* @return samples a step that fit, if each takes as much of the buffers of values and of what is
 * given as one of this batch, and all else stays as large; with a margin, since each allocation
 * takes whole pages of the GPU's, and streams and kernels take some too */
static uint64_t samples_that_fit(const bpt_device_network *net, size_t free_bytes) {
    const bpt_network_memory *m = &net->memory;
    const size_t of_batch = m->activations + m->activation_gradients +
                            bpt_cuda_feed_bytes(net->input.bytes) + bpt_cuda_given_bytes(net);
    const size_t margin = (size_t)32 << 20, others = m->total - of_batch + margin;
    if (free_bytes <= others) return 0;
    const double part = (double)(free_bytes - others) / (double)of_batch;
    return (uint64_t)(part * (double)net->batch);
}

/* @param has how the GPU's memory stands to what is needed */
static bpt_status fail_memory(const bpt_device_network *net, const char *has, size_t free_bytes) {
    char why[BPT_ERROR_TEXT_SIZE];
    snprintf(why, sizeof why, "%.2f GB of memory, %s %s %.2f GB free",
             (double)net->memory.total * 1e-9, net->device->base.name, has,
             (double)free_bytes * 1e-9);
    const uint64_t n_fit = samples_that_fit(net, free_bytes);
    return fail_full(net, why, n_fit < (uint64_t)net->batch ? n_fit : 0);
}

static bpt_status zeroed(const bpt_device_network *net, size_t bytes, void **at) {
    BPT_TRY(bpt_cuda_allocate(bytes, at));
    return bpt_cuda_set(net->stream, *at, 0, bytes);
}

static bpt_status allocate_vectors(bpt_device_network *net) {
    const size_t bytes = net->n_floats * sizeof(float);
    bpt_cuda_vectors *v = &net->vectors;
    BPT_TRY(zeroed(net, bytes, (void **)&v->weights));
    if (!net->forward_only) BPT_TRY(zeroed(net, bytes, (void **)&v->gradients));
    for (size_t i = 0; i < n_states(net); i++) BPT_TRY(zeroed(net, bytes, (void **)&v->state[i]));
    if (net->type == BPT_BF16)
        BPT_TRY(zeroed(net, net->n_floats * sizeof(bpt_bf16), (void **)&v->copies));
    return bpt_cuda_allocate(net->model->segments.n_elements * sizeof(float),
                             (void **)&net->canonical);
}

static bpt_status allocate(bpt_device_network *net) {
    size_t block_bytes = 0;
    for (size_t i = 0; i < net->n_places; i++) {
        const size_t end = net->places[i].offset + net->places[i].bytes;
        if (end > block_bytes) block_bytes = end;
    }
    BPT_TRY(bpt_cuda_stream_create(&net->stream));
    BPT_TRY(allocate_vectors(net));
    BPT_TRY(bpt_cuda_allocate(block_bytes, (void **)&net->block));
    BPT_TRY(bpt_cuda_allocate(bpt_cuda_library_workspace(net->device->library), &net->workspace));
    BPT_TRY(bpt_cuda_allocate(bpt_cuda_given_bytes(net), (void **)&net->given));
    BPT_TRY(bpt_cuda_allocate(sizeof *net->outcome, (void **)&net->outcome));
    BPT_TRY(bpt_cuda_host_allocate(bpt_cuda_given_bytes(net), (void **)&net->host_given));
    BPT_TRY(bpt_cuda_host_allocate(sizeof *net->host_outcome, (void **)&net->host_outcome));
    BPT_TRY(bpt_cuda_feed_create(net->input.bytes, &net->feed));
    BPT_TRY(bpt_cuda_captured_create(&net->captured));
    BPT_TRY(create_transfer(net));
    BPT_TRY(bpt_cuda_update_create(net->segments, net->model->segments.n, &net->learning,
                                   net->vectors, &net->update));
    return bpt_cuda_wait(net->stream);
}

/* ---- life ---- */

static bpt_status plan(bpt_device_network *net) {
    const size_t n_segments = net->model->segments.n, n_layers = net->model->n_layers;
    BPT_TRY(BPT_NEW("segments on a GPU", n_segments, &net->segments));
    BPT_TRY(BPT_NEW("orders of segments", n_segments, &net->turns));
    BPT_TRY(BPT_NEW("activations", n_layers + 1, &net->activations));
    BPT_TRY(BPT_NEW("forward passes", n_layers, &net->forward_end));
    BPT_TRY(BPT_NEW("backward passes", n_layers, &net->backward_end));
    BPT_TRY(bpt__cuda_plan_layers(net));
    lay_segments(net);
    BPT_TRY(bpt__cuda_place_buffers(net));
    count_memory(net);
    return BPT_OK;
}

static bpt_status create(bpt_device_network *net) {
    size_t free_bytes;
    BPT_TRY(bpt_cuda_use(net->device->index));
    bpt_status status = plan(net);
    net->device->base.n_measured = bpt_cuda_library_measured(net->device->library);
    if (status == BPT_EFULL) return fail_measuring(net);
    BPT_TRY(status);
    BPT_TRY(bpt_cuda_free_bytes(&free_bytes));
    if (net->memory.total > free_bytes) return fail_memory(net, "has", free_bytes);
    status = allocate(net);
    if (status != BPT_EFULL) return status;
    /* It is in pieces, or others have taken some since. */
    return fail_memory(net, "could not give it, with", free_bytes);
}

bpt_status bpt__cuda_network_create(bpt_device *device, const bpt_device_wish *wish,
                                    bpt_device_network **out, bpt_network_memory *memory) {
    bpt_device_network *net;
    BPT_TRY(BPT_NEW("network on a GPU", 1, &net));
    net->device = (bpt_cuda_device *)device;
    net->model = wish->model;
    net->batch = wish->batch;
    net->type = wish->activations;
    net->learning = wish->learning;
    net->forward_only = wish->forward_only;
    net->input = bpt_cuda_input_of(wish->images, wish->batch, wish->model->input);
    const bpt_status status = create(net);
    if (status == BPT_OK) {
        *memory = net->memory;
        *out = net;
    } else {
        bpt__cuda_network_free(net);
    }
    return status;
}

static void free_vectors(bpt_cuda_vectors *v) {
    bpt_cuda_free(v->weights);
    bpt_cuda_free(v->gradients);
    for (int i = 0; i < BPT_MAX_STATES; i++) bpt_cuda_free(v->state[i]);
    bpt_cuda_free(v->copies);
}

static void free_plan(bpt_device_network *net) {
    for (size_t i = 0; i < net->n_convs; i++) bpt_cuda_conv_free(net->convs[i]);
    for (size_t i = 0; i < net->n_products; i++) bpt_cuda_product_free(net->products[i]);
    for (size_t i = 0; i < net->n_objects; i++) bpt_free(net->objects[i]);
    bpt_free(net->convs);
    bpt_free(net->products);
    bpt_free(net->objects);
    bpt_free(net->tasks);
    bpt_free(net->places);
    bpt_free(net->forward_end);
    bpt_free(net->backward_end);
    bpt_free(net->activations);
    bpt_free(net->segments);
    bpt_free(net->turns);
}

void bpt__cuda_network_free(bpt_device_network *net) {
    if (!net) return;
    bpt_cuda_library_use(net->device->library, NULL);
    bpt_cuda_captured_free(net->captured);
    bpt_cuda_hand_out_free(net->hand_out);
    bpt_cuda_feed_free(net->feed);
    bpt_cuda_transfer_free(net->transfer);
    bpt_cuda_update_free(net->update);
    bpt_cuda_host_free(net->host_outcome);
    bpt_cuda_host_free(net->host_given);
    bpt_cuda_free(net->outcome);
    bpt_cuda_free(net->given);
    bpt_cuda_free(net->workspace);
    bpt_cuda_free(net->canonical);
    bpt_cuda_free(net->block);
    free_vectors(&net->vectors);
    bpt_cuda_stream_free(net->stream);
    free_plan(net);
    bpt_free(net);
}
