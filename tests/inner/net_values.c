#include "tests/inner/net_values.h"

#include "inner/network/network_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* The forward pass of the last run again: the values' memory was used for others since. */
static void compute(bpt_network *net, size_t layer) {
    const bpt_step_task *tasks = net->builder.tasks;
    for (size_t i = 0; i < net->forward_end[layer]; i++)
        if (tasks[i].phase & (BPT_PHASE_FORWARD | BPT_PHASE_TRAINING))
            net_assert_ok(tasks[i].fn(tasks[i].arg, 0));
}

/* Out of the layout and the type that the layer has. */
float *net_values(const net_fixture *f, size_t layer) {
    bpt_network *net = f->net;
    const bpt_activation *a = &net->activations[layer + 1];
    const bpt_shape s = f->model->layers[layer].out;
    const int64_t n_values = s.c * s.h * s.w; /* of a sample */
    float *values = net_floats((size_t)(f->batch * n_values));
    bpt_kernel *kernels[BPT_MAX_TILES];
    for (size_t t = 0; t < net->builder.n_tiles; t++) {
        const int64_t dims[] = {bpt_builder_tile_samples(&net->builder, t), s.c, s.h, s.w};
        const size_t first = (size_t)(net->builder.tile_start[t] * n_values);
        const bpt_layout *plain;
        net_assert_ok(bpt_layout_plain(net->cpu, BPT_F32, dims, 4, &plain));
        net_assert_ok(bpt_cpu_reorder(net->cpu, a->layout[t], plain, &kernels[t]));
        bpt_kernel_bind(kernels[t], BPT_SLOT_SRC, a->value[t]);
        bpt_kernel_bind(kernels[t], BPT_SLOT_DST,
                        bpt_ref_in(BPT_BLOCK_FLAT, first * sizeof(float)));
    }
    net->blocks.base[BPT_BLOCK_FLAT] = (char *)values;
    net_assert_ok(bpt_cpu_resolve(net->cpu, BPT_BLOCK_FLAT, &net->blocks));
    net_assert_ok(bpt_cpu_resolve(net->cpu, a->value[0].block, &net->blocks));
    net_assert_ok(bpt_cpu_prepare(net->cpu));
    compute(net, layer);
    for (size_t t = 0; t < net->builder.n_tiles; t++) net_assert_ok(bpt_kernel_run(kernels[t], 0));
    return values;
}

float *net_logits(const net_fixture *f) {
    return net_values(f, f->model->n_layers - 1);
}

float **net_switches(const net_fixture *f) {
    const bpt_model *m = f->model;
    float **values = calloc(m->n_layers + 1, sizeof *values);
    assert_non_null(values);
    values[0] = f->pixels;
    for (size_t i = 0; i < m->n_layers; i++) {
        const bpt_layer *l = &m->layers[i];
        const size_t switched_by = l->kind == &bpt_layer_relu ? i + 1 : l->inputs[0];
        if (l->kind != &bpt_layer_relu && l->kind != &bpt_layer_maxpool) continue;
        if (!values[switched_by]) values[switched_by] = net_values(f, switched_by - 1);
    }
    return values;
}

void net_switches_free(const net_fixture *f, float **values) {
    for (size_t i = 1; i <= f->model->n_layers; i++) free(values[i]);
    free(values);
}
