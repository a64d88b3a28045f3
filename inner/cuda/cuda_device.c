#include "inner/cuda/cuda_device.h"

#include "base/memory.h"
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_network_life.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { OLDEST_MAJOR = 8 }; /* compute capability: the oldest that multiplies bfloat16 */

static bpt_status fail_old(const struct cudaDeviceProp *p, int index) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--device cuda:%d: %s has compute capability %d.%d, needed is %d.0",
                 index, p->name, p->major, p->minor, OLDEST_MAJOR);
    bpt_hint("cards from Ampere on (2020) have it; --device cpu needs none");
    return status;
}

static bpt_status fail_code(const struct cudaDeviceProp *p, int index) {
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--device cuda:%d: this bpt has no code for %s (compute capability %d.%d)",
        index, p->name, p->major, p->minor);
    bpt_hint("build it with CUDAARCHS=%d%d in cmake's environment; --device cpu needs none",
             p->major, p->minor);
    return status;
}

/* What waits for the GPU sleeps. */
static bpt_status describe(int index, bpt_cuda_device *d) {
    bpt_device *base = &d->base;
    struct cudaDeviceProp p;
    bool has_code;
    BPT_CUDA_TRY(
        cudaInitDevice(index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
    BPT_TRY(bpt_cuda_use(index));
    BPT_CUDA_TRY(cudaGetDeviceProperties(&p, index));
    if (p.major < OLDEST_MAJOR) return fail_old(&p, index);
    BPT_TRY(bpt_cuda_has_code(&has_code));
    if (!has_code) return fail_code(&p, index);
    snprintf(base->name, sizeof base->name, "cuda:%d (%.100s)", index, p.name);
    snprintf(d->card, sizeof d->card, "%.100s", p.name);
    base->bf16 = true;
    base->can_take_images = true;
    base->memory_bytes = p.totalGlobalMem;
    return BPT_OK;
}

static bpt_status open_device(int index, bool tf32, bpt_device **out) {
    bpt_cuda_device *d;
    BPT_TRY(BPT_NEW("GPU", 1, &d));
    d->base.kind = &bpt_cuda_device_kind;
    d->index = index;
    bpt_status status = describe(index, d);
    if (status == BPT_OK) status = bpt_cuda_library_open(tf32, &d->library);
    if (status == BPT_OK)
        *out = &d->base;
    else
        bpt_free(d);
    return status;
}

static bpt_status write_choices(const bpt_device *device, char **text) {
    const bpt_cuda_device *d = (const bpt_cuda_device *)device;
    return bpt_cuda_library_write_choices(d->library, d->card, text);
}

static bpt_status read_choices(bpt_device *device, const bpt_yaml *doc, const bpt_yaml_node *map,
                               const char **unlike) {
    const bpt_cuda_device *d = (const bpt_cuda_device *)device;
    if (bpt_yaml_find(map, "shares") && bpt_yaml_find(map, "device")) /* of one with cores beside */
        map = bpt_yaml_find(map, "device");
    return bpt_cuda_library_read_choices(d->library, d->card, doc, map, unlike);
}

static bool pin(const bpt_device *device, void *at, size_t bytes) {
    const bpt_cuda_device *d = (const bpt_cuda_device *)device;
    return bpt_cuda_use(d->index) == BPT_OK && bpt_cuda_pin(at, bytes);
}

static void unpin(const bpt_device *device, void *at) {
    (void)device;
    bpt_cuda_unpin(at);
}

static void close_device(bpt_device *device) {
    bpt_cuda_device *d = (bpt_cuda_device *)device;
    bpt_cuda_library_free(d->library);
    bpt_free(d);
}

const bpt_device_kind bpt_cuda_device_kind = {
    .name = "cuda",
    .count = bpt_cuda_count,
    .open = open_device,
    .close = close_device,
    .create = bpt__cuda_network_create,
    .free = bpt__cuda_network_free,
    .begin = bpt__cuda_network_begin,
    .end = bpt__cuda_network_end,
    .get = bpt__cuda_network_get,
    .set = bpt__cuda_network_set,
    .add_gradients = bpt__cuda_network_add_gradients,
    .pin = pin,
    .unpin = unpin,
    .host_allocate = bpt_cuda_host_allocate,
    .host_free = bpt_cuda_host_free,
    .hand_out = bpt__cuda_network_hand_out,
    .visit = bpt__cuda_network_visit,
    .write_choices = write_choices,
    .read_choices = read_choices,
    .products_ns = bpt__cuda_network_products_ns,
};
