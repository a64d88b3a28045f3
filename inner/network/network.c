#include "inner/network/network.h"

#include "base/memory.h"
#include "inner/network/network_private.h"

#include <assert.h>
#include <inttypes.h>

static bpt_status fail_clipping(void) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "a part of a model does not know the norm of the whole gradient");
    bpt_hint("leave the norm unbounded (clip_norm 0)");
    return status;
}

/* Everything but memory of its own; @p n_workers will run it. On error @p net is to be freed. */
static bpt_status plan(bpt_network *net, const bpt_model *model, int64_t batch,
                       bpt_value_type activations, bpt_learning learning, unsigned n_workers) {
    assert(batch >= 1 && (!net->builder.forward_only || model->role == BPT_MODEL_WHOLE));
    if (batch > INT32_MAX) /* oneDNN counts samples in an int; the rest of the sizes fit then */
        return bpt_fail(BPT_ENOMEM, "a batch of %" PRId64 " samples is too large", batch);
    if (model->role != BPT_MODEL_WHOLE && learning.clip_norm > 0.0) return fail_clipping();
    net->model = model;
    net->learning = learning;
    net->learning.optimizer = bpt_learning_optimizer(&learning);
    net->wants_norms = bpt_learning_wants_norms(&learning);
    net->clip_scale = 1.0f;
    net->step.denominator = 1.0f;
    BPT_TRY(bpt_cpu_create(n_workers, &net->cpu));
    net->builder.cpu = net->cpu;
    net->builder.blocks = &net->blocks;
    net->builder.step = &net->step;
    net->builder.type = activations;
    net->builder.costs = model->costs;
    bpt_builder_cut(&net->builder, batch,
                    model->costs ? model->costs->workers : (int64_t)n_workers);
    BPT_TRY(bpt__network_plan(net));
    BPT_TRY(bpt__network_place(net));
    return bpt__network_count(net);
}

static bpt_status reserve(bpt_network *net) {
    BPT_TRY(bpt_blocks_allocate(&net->blocks, bpt_cpu_scratch_bytes(net->cpu)));
    BPT_TRY(bpt_cpu_prepare(net->cpu));
    for (int block = BPT_BLOCK_WEIGHTS; block < BPT_N_BLOCKS; block++)
        BPT_TRY(bpt_cpu_resolve(net->cpu, (bpt_block)block, &net->blocks));
    for (int role = 0; role < BPT_N_GRAPHS; role++)
        if (bpt__graph_exists(net, (bpt_graph_role)role))
            BPT_TRY(bpt__network_graph(net, (bpt_graph_role)role));
    return BPT_OK;
}

static bpt_status create_on_device(bpt_network *net, const bpt_model *model, int64_t batch,
                                   bpt_value_type activations, bpt_learning learning) {
    assert(batch >= 1 && model->role == BPT_MODEL_WHOLE);
    learning.optimizer = bpt_learning_optimizer(&learning);
    net->model = model;
    net->learning = learning;
    net->takes_images = net->device->takes_images;
    const bpt_device_wish wish = {
        .model = model,
        .batch = batch,
        .activations = activations,
        .learning = learning,
        .forward_only = net->builder.forward_only,
        .images = net->takes_images,
        .pool = net->pool,
    };
    return net->device->kind->create(net->device, &wish, &net->on_device, &net->memory);
}

static bpt_status create(bpt_device *device, const bpt_model *model, int64_t batch,
                         bpt_value_type activations, bpt_learning learning, bool forward_only,
                         bpt_pool *pool, bpt_network **out) {
    bpt_network *net;
    bpt_status status;
    BPT_TRY(BPT_NEW("network", 1, &net));
    net->pool = pool;
    net->device = device;
    net->builder.forward_only = forward_only;
    if (device) {
        status = create_on_device(net, model, batch, activations, learning);
    } else {
        status = plan(net, model, batch, activations, learning, bpt_pool_n_workers(pool));
        if (status == BPT_OK) status = reserve(net);
    }
    if (status == BPT_OK)
        *out = net;
    else
        bpt_network_free(net);
    return status;
}

bpt_status bpt_network_create(const bpt_model *model, int64_t batch, bpt_value_type activations,
                              bpt_learning learning, bpt_pool *pool, bpt_network **net) {
    return create(NULL, model, batch, activations, learning, false, pool, net);
}

bpt_status bpt_network_create_on(bpt_device *device, const bpt_model *model, int64_t batch,
                                 bpt_value_type activations, bpt_learning learning, bpt_pool *pool,
                                 bpt_network **net) {
    return create(device, model, batch, activations, learning, false, pool, net);
}

bpt_status bpt_network_create_forward(const bpt_model *model, int64_t batch,
                                      bpt_value_type activations, bpt_pool *pool,
                                      bpt_network **net) {
    return create(NULL, model, batch, activations, (bpt_learning){0}, true, pool, net);
}

bpt_status bpt_network_create_forward_on(bpt_device *device, const bpt_model *model, int64_t batch,
                                         bpt_value_type activations, bpt_pool *pool,
                                         bpt_network **net) {
    return create(device, model, batch, activations, (bpt_learning){0}, true, pool, net);
}

static bpt_status plan_only(const bpt_model *model, int64_t batch, bpt_value_type activations,
                            bpt_learning learning, bool forward_only, unsigned n_workers,
                            bpt_network_memory *memory) {
    bpt_network *net;
    BPT_TRY(BPT_NEW("network", 1, &net));
    net->builder.forward_only = forward_only;
    const bpt_status status = plan(net, model, batch, activations, learning, n_workers);
    if (status == BPT_OK) *memory = net->memory;
    bpt_network_free(net);
    return status;
}

bpt_status bpt_network_plan(const bpt_model *model, int64_t batch, bpt_value_type activations,
                            bpt_learning learning, unsigned n_workers, bpt_network_memory *memory) {
    return plan_only(model, batch, activations, learning, false, n_workers, memory);
}

bpt_status bpt_network_plan_forward(const bpt_model *model, int64_t batch,
                                    bpt_value_type activations, unsigned n_workers,
                                    bpt_network_memory *memory) {
    return plan_only(model, batch, activations, (bpt_learning){0}, true, n_workers, memory);
}

void bpt_network_free(bpt_network *net) {
    if (!net) return;
    if (net->device) net->device->kind->free(net->on_device);
    for (int role = 0; role < BPT_N_GRAPHS; role++) bpt_graph_free(net->graphs[role]);
    bpt_free(net->activations);
    bpt_free(net->forward_end);
    bpt_free(net->chunks);
    bpt_blocks_release(&net->blocks);
    bpt_builder_release(&net->builder);
    bpt_cpu_free(net->cpu);
    bpt_free(net);
}
