/* Between the layouts that kernels compute in and the canonical flat vector. One pair of kernels a
 * segment serves weights, gradients and the optimiser's state, since these lie at the same offsets.
 */
#include "inner/network/network_private.h"

#include <assert.h>

bpt_status bpt__plan_transfers(bpt_network *net) {
    bpt_builder *b = &net->builder;
    const size_t n = net->model->segments.n;
    BPT_TRY(BPT_BUILDER_NEW(b, n, &net->exports));
    for (size_t s = 0; s < n; s++) {
        const bpt_weight_plan *w = &b->weights[s];
        const bpt_segment *segment = w->segment;
        const bpt_ref flat = bpt_ref_in(BPT_BLOCK_FLAT, segment->offset * sizeof(float));
        const bpt_ref native = bpt_ref_in(BPT_BLOCK_NATIVE, w->master.offset);
        const bpt_layout *plain = w->flat;
        if (!plain)
            BPT_TRY(bpt_layout_plain(net->cpu, BPT_F32, segment->dims, segment->n_dims, &plain));
        net->exports[s] = (uint32_t)b->n_tasks;
        BPT_TRY(bpt_builder_reorder(b, BPT_PHASE_EXPORT, (bpt_task_info){"export", segment->name},
                                    w->layout, native, plain, flat, (bpt_deps){0}, NULL));
        BPT_TRY(bpt_builder_reorder(b, BPT_PHASE_IMPORT, (bpt_task_info){"import", segment->name},
                                    plain, flat, w->layout, native, (bpt_deps){0}, NULL));
    }
    return BPT_OK;
}

bpt_status bpt__bind_transfer(bpt_network *net, bpt_vector which, float *flat) {
    static const bpt_block blocks[] = {
        [BPT_VECTOR_WEIGHTS] = BPT_BLOCK_WEIGHTS,
        [BPT_VECTOR_GRADIENTS] = BPT_BLOCK_GRADIENTS,
        [BPT_VECTOR_STATE_0] = BPT_BLOCK_STATE_0,
        [BPT_VECTOR_STATE_1] = BPT_BLOCK_STATE_1,
    };
    assert(net->blocks.bytes[blocks[which]] > 0);
    net->blocks.base[BPT_BLOCK_NATIVE] = net->blocks.base[blocks[which]];
    net->blocks.base[BPT_BLOCK_FLAT] = (char *)flat;
    BPT_TRY(bpt_cpu_resolve(net->cpu, BPT_BLOCK_NATIVE, &net->blocks));
    return bpt_cpu_resolve(net->cpu, BPT_BLOCK_FLAT, &net->blocks);
}

static bpt_status transfer(bpt_network *net, bpt_graph_role role, bpt_vector which, float *flat) {
    BPT_TRY(bpt__bind_transfer(net, which, flat));
    return bpt_pool_run(net->pool, net->graphs[role], NULL);
}

bpt_status bpt_network_get(bpt_network *net, bpt_vector which, float *flat) {
    if (net->device) return net->device->kind->get(net->on_device, which, flat);
    return transfer(net, BPT_GRAPH_EXPORT, which, flat);
}

bpt_status bpt_network_set(bpt_network *net, bpt_vector which, const float *flat) {
    if (net->device) return net->device->kind->set(net->on_device, which, flat);
    return transfer(net, BPT_GRAPH_IMPORT, which,
                    (float *)flat); /* only read by the import graph */
}
