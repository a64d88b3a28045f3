/* What planning a step collects, and where its buffers then lie. */
#include "base/memory.h"
#include "inner/cuda/cuda_network.h"
#include "inner/memory/sharing.h"

#include <stdlib.h>

bpt_status bpt__cuda_object(bpt_device_network *net, size_t count, size_t size, void **out) {
    BPT_TRY(
        BPT_GROW("objects of a plan", net->n_objects + 1, &net->objects, &net->objects_capacity));
    BPT_TRY(bpt_alloc("object of a plan", count, size, &net->objects[net->n_objects]));
    *out = net->objects[net->n_objects++];
    return BPT_OK;
}

/* A place is a whole number of lines of the GPU's cache, so that all begin with one. */
bpt_status bpt__cuda_reserve(bpt_device_network *net, bpt_cuda_buffer_kind kind, size_t bytes,
                             bpt_cuda_buffer *out) {
    enum { LINE = 256 };
    BPT_TRY(BPT_GROW("buffers of a plan", net->n_places + 1, &net->places, &net->places_capacity));
    net->places[net->n_places++] =
        (bpt_cuda_place){.kind = kind, .bytes = (bytes + LINE - 1) / LINE * LINE};
    *out = (bpt_cuda_buffer)net->n_places;
    return BPT_OK;
}

static size_t activation_bytes(const bpt_device_network *net, const bpt_cuda_activation *a) {
    return (size_t)bpt__cuda_values(net, a) * bpt_value_bytes(a->type);
}

bpt_status bpt__cuda_reserve_values(bpt_device_network *net, bpt_cuda_activation *a) {
    return bpt__cuda_reserve(net, BPT_CUDA_VALUES, activation_bytes(net, a), &a->value);
}

bpt_status bpt__cuda_reserve_grad(bpt_device_network *net, const bpt_cuda_activation *a,
                                  bpt_cuda_buffer *grad) {
    return bpt__cuda_reserve(net, BPT_CUDA_GRADIENTS, activation_bytes(net, a), grad);
}

static bpt_status list_places(bpt_device_network *net, const bpt_cuda_buffer *touches, size_t n,
                              bpt_cuda_task *task) {
    uint32_t *places;
    BPT_TRY(BPT_CUDA_NEW(net, n, &places));
    for (size_t i = 0; i < n; i++) {
        bool listed = touches[i] == 0;
        for (size_t k = 0; k < task->n_places; k++) listed |= places[k] == touches[i] - 1;
        if (!listed) places[task->n_places++] = touches[i] - 1;
    }
    task->places = places;
    return BPT_OK;
}

bpt_status bpt__cuda_task(bpt_device_network *net, bpt_cuda_phase phase, bpt_cuda_task_fn fn,
                          const void *arg, const char *label, const char *kind,
                          const bpt_cuda_buffer *touches, size_t n_touches) {
    bpt_cuda_task t = {.phase = phase, .fn = fn, .arg = arg, .label = label, .kind = kind};
    BPT_TRY(list_places(net, touches, n_touches, &t));
    BPT_TRY(BPT_GROW("tasks of a plan", net->n_tasks + 1, &net->tasks, &net->tasks_capacity));
    net->tasks[net->n_tasks++] = t;
    return BPT_OK;
}

bpt_status bpt__cuda_keep_conv(bpt_device_network *net, bpt_cuda_conv *conv) {
    const bpt_status status =
        BPT_GROW("convolutions", net->n_convs + 1, &net->convs, &net->convs_capacity);
    if (status == BPT_OK)
        net->convs[net->n_convs++] = conv;
    else
        bpt_cuda_conv_free(conv);
    return status;
}

bpt_status bpt__cuda_keep_product(bpt_device_network *net, bpt_cuda_product *product) {
    const bpt_status status =
        BPT_GROW("products", net->n_products + 1, &net->products, &net->products_capacity);
    if (status == BPT_OK)
        net->products[net->n_products++] = product;
    else
        bpt_cuda_product_free(product);
    return status;
}

unsigned bpt__cuda_phases(bpt_device_work work) {
    enum { COMPUTE = BPT_CUDA_FORWARD | BPT_CUDA_TRAINING | BPT_CUDA_LOSS | BPT_CUDA_BACKWARD };
    static const unsigned phases[BPT_DEVICE_N_WORKS] = {
        [BPT_DEVICE_TRAIN] = COMPUTE | BPT_CUDA_UPDATE,
        [BPT_DEVICE_GRADIENT] = COMPUTE | BPT_CUDA_CHECK,
        [BPT_DEVICE_APPLY] = BPT_CUDA_UPDATE,
        [BPT_DEVICE_EVALUATE] = BPT_CUDA_FORWARD | BPT_CUDA_INFERENCE | BPT_CUDA_LOSS,
    };
    return phases[work];
}

/* ---- places ---- */

/* The tasks of a work, one after another.
 * @param users,before shape [n_tasks] */
static void list_users(bpt_device_network *net, unsigned phases, bpt_user *users,
                       uint32_t *before) {
    bool first = true;
    uint32_t last = 0;
    for (size_t i = 0; i < net->n_tasks; i++) {
        const bpt_cuda_task *t = &net->tasks[i];
        users[i] = (bpt_user){0};
        if (!(t->phase & phases)) continue;
        before[i] = last;
        users[i] = (bpt_user){&before[i], !first, t->places, t->n_places};
        for (size_t j = 0; j < t->n_places; j++) net->places[t->places[j]].used = true;
        first = false;
        last = (uint32_t)i;
    }
}

static bpt_status note_works(bpt_device_network *net, bpt_sharing *sharing) {
    bpt_user *users = NULL;
    uint32_t *before = NULL;
    bpt_status status = BPT_NEW("users of memory", net->n_tasks, &users);
    if (status == BPT_OK) status = BPT_NEW("order of tasks", net->n_tasks, &before);
    for (int work = 0; status == BPT_OK && work < BPT_DEVICE_N_WORKS; work++) {
        if (net->forward_only && work != BPT_DEVICE_EVALUATE) continue;
        list_users(net, bpt__cuda_phases((bpt_device_work)work), users, before);
        status = bpt_sharing_note(sharing, users, net->n_tasks);
    }
    bpt_free(before);
    bpt_free(users);
    return status;
}

static bpt_status place(bpt_device_network *net, const bpt_sharing *sharing, size_t *total) {
    size_t *bytes = NULL, *offsets = NULL;
    bpt_status status = BPT_NEW("sizes of buffers", net->n_places, &bytes);
    if (status == BPT_OK) status = BPT_NEW("places of buffers", net->n_places, &offsets);
    for (size_t i = 0; status == BPT_OK && i < net->n_places; i++) {
        if (!net->places[i].used) net->places[i].bytes = 0;
        bytes[i] = net->places[i].bytes;
    }
    if (status == BPT_OK) status = bpt_sharing_place(sharing, bytes, offsets, total);
    for (size_t i = 0; status == BPT_OK && i < net->n_places; i++)
        net->places[i].offset = offsets[i];
    bpt_free(offsets);
    bpt_free(bytes);
    return status;
}

static int compare_places(const void *x, const void *y) {
    const bpt_cuda_place *a = x, *b = y;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* @param sorted by place, shape [n]
 * @return bytes that buffers up to a kind lie on, shared ones counted once */
static size_t covered(const bpt_cuda_place *sorted, size_t n, bpt_cuda_buffer_kind last) {
    size_t sum = 0, end = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = sorted[i].offset > end ? sorted[i].offset : end;
        const size_t stop = sorted[i].offset + sorted[i].bytes;
        if (sorted[i].kind > last || stop <= begin) continue;
        sum += stop - begin;
        end = stop;
    }
    return sum;
}

static bpt_status count(bpt_device_network *net, size_t total) {
    bpt_network_memory *m = &net->memory;
    bpt_cuda_place *sorted;
    BPT_TRY(BPT_NEW("buffers by place", net->n_places, &sorted));
    for (size_t i = 0; i < net->n_places; i++) sorted[i] = net->places[i];
    qsort(sorted, net->n_places, sizeof *sorted, compare_places);
    m->activations = covered(sorted, net->n_places, BPT_CUDA_VALUES);
    m->activation_gradients = covered(sorted, net->n_places, BPT_CUDA_GRADIENTS) - m->activations;
    m->workspaces = total - m->activations - m->activation_gradients;
    for (size_t i = 0; i < net->n_places; i++) m->unshared += net->places[i].bytes;
    m->total = total;
    bpt_free(sorted);
    return BPT_OK;
}

bpt_status bpt__cuda_place_buffers(bpt_device_network *net) {
    bpt_sharing *sharing;
    size_t total;
    BPT_TRY(bpt_sharing_create(net->n_places, &sharing));
    bpt_status status = note_works(net, sharing);
    if (status == BPT_OK) status = place(net, sharing, &total);
    bpt_sharing_free(sharing);
    return status == BPT_OK ? count(net, total) : status;
}
