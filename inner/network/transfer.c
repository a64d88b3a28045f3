/* Between the layouts that kernels compute in and the canonical flat vector. One pair of kernels a
 * segment serves weights, gradients and the optimiser's state, since these lie at the same offsets.
 */
#include "inner/network/network_private.h"

#include <assert.h>
#include <string.h>

typedef struct {
    bpt_phase from_native, to_native;
    bpt_ref native, flat;
} pair;

/* @param first element that learns */
static pair pair_of(const bpt_weight_plan *w, size_t first) {
    const size_t offset = w->segment->offset;
    if (offset < first)
        return (pair){BPT_PHASE_EXPORT_FROZEN, BPT_PHASE_IMPORT_FROZEN, w->master,
                      bpt_ref_in(BPT_BLOCK_FLAT_FROZEN, offset * sizeof(float))};
    return (pair){BPT_PHASE_EXPORT, BPT_PHASE_IMPORT,
                  bpt_ref_in(BPT_BLOCK_NATIVE, w->master.offset),
                  bpt_ref_in(BPT_BLOCK_FLAT, (offset - first) * sizeof(float))};
}

bpt_status bpt__plan_transfers(bpt_network *net) {
    bpt_builder *b = &net->builder;
    const size_t n = net->model->segments.n, first = bpt_model_frozen_elements(net->model);
    BPT_TRY(BPT_BUILDER_NEW(b, n, &net->exports));
    for (size_t s = 0; s < n; s++) {
        const bpt_weight_plan *w = &b->weights[s];
        const char *name = w->segment->name;
        const pair p = pair_of(w, first);
        const bpt_layout *plain = w->flat;
        if (!plain)
            BPT_TRY(
                bpt_layout_plain(net->cpu, BPT_F32, w->segment->dims, w->segment->n_dims, &plain));
        net->exports[s] = (uint32_t)b->n_tasks;
        BPT_TRY(bpt_builder_reorder(b, p.from_native, (bpt_task_info){"export", name}, w->layout,
                                    p.native, plain, p.flat, (bpt_deps){0}, NULL));
        BPT_TRY(bpt_builder_reorder(b, p.to_native, (bpt_task_info){"import", name}, plain, p.flat,
                                    w->layout, p.native, (bpt_deps){0}, NULL));
    }
    return BPT_OK;
}

static bpt_status bind(bpt_network *net, bpt_block block, char *base) {
    net->blocks.base[block] = base;
    return bpt_cpu_resolve(net->cpu, block, &net->blocks);
}

bpt_status bpt__bind_transfer(bpt_network *net, bpt_vector which, float *flat) {
    static const bpt_block blocks[] = {
        [BPT_VECTOR_WEIGHTS] = BPT_BLOCK_WEIGHTS,
        [BPT_VECTOR_GRADIENTS] = BPT_BLOCK_GRADIENTS,
        [BPT_VECTOR_STATE_0] = BPT_BLOCK_STATE_0,
        [BPT_VECTOR_STATE_1] = BPT_BLOCK_STATE_1,
    };
    assert(net->blocks.bytes[blocks[which]] > 0);
    BPT_TRY(bind(net, BPT_BLOCK_NATIVE, net->blocks.base[blocks[which]]));
    return bind(net, BPT_BLOCK_FLAT, (char *)flat);
}

static bpt_status transfer(bpt_network *net, bpt_graph_role role, bpt_vector which, float *flat) {
    BPT_TRY(bpt__bind_transfer(net, which, flat));
    return bpt_pool_run(net->pool, net->graphs[role], NULL);
}

static bpt_status transfer_frozen(bpt_network *net, bpt_graph_role role, float *flat) {
    BPT_TRY(bind(net, BPT_BLOCK_FLAT_FROZEN, (char *)flat));
    return bpt_pool_run(net->pool, net->graphs[role], NULL);
}

bpt_status bpt_network_get_learned(bpt_network *net, bpt_vector which, float *flat) {
    if (net->device)
        return net->device->kind->get(net->on_device, which, bpt_model_frozen_segments(net->model),
                                      flat);
    return transfer(net, BPT_GRAPH_EXPORT, which, flat);
}

bpt_status bpt_network_set_learned(bpt_network *net, bpt_vector which, const float *flat) {
    if (net->device)
        return net->device->kind->set(net->on_device, which, bpt_model_frozen_segments(net->model),
                                      flat);
    return transfer(net, BPT_GRAPH_IMPORT, which,
                    (float *)flat); /* only read by the import graph */
}

/* @return whether a vector has a part of layers that are frozen */
static bool has_frozen(const bpt_network *net, bpt_vector which) {
    return net->model->n_frozen > 0 && which == BPT_VECTOR_WEIGHTS;
}

bpt_status bpt_network_get(bpt_network *net, bpt_vector which, float *flat) {
    const size_t first = bpt_model_frozen_elements(net->model);
    const bool frozen = has_frozen(net, which);
    if (frozen && net->device) return net->device->kind->get(net->on_device, which, 0, flat);
    if (frozen)
        BPT_TRY(transfer_frozen(net, BPT_GRAPH_EXPORT_FROZEN, flat));
    else
        memset(flat, 0, first * sizeof *flat);
    return bpt_network_get_learned(net, which, flat + first);
}

bpt_status bpt_network_set(bpt_network *net, bpt_vector which, const float *flat) {
    const bool frozen = has_frozen(net, which);
    if (frozen && net->device) return net->device->kind->set(net->on_device, which, 0, flat);
    if (frozen) BPT_TRY(transfer_frozen(net, BPT_GRAPH_IMPORT_FROZEN, (float *)flat));
    return bpt_network_set_learned(net, which, flat + bpt_model_frozen_elements(net->model));
}
