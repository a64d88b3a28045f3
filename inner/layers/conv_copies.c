#include "inner/layers/conv_copies.h"

#include "inner/loops/weight_copies.h"

#include <string.h>

struct bpt_conv_copies {
    const bpt_blocks *blocks;
    const bpt_step_values *step;
    bpt_copy_weights *copy;
    bpt_weight_blocks n;
    int64_t dims[4];
    bpt_ref weights, forward, backward;
    bool has_backward;
    bpt_deps ready;
};

static bpt_status run(void *arg, unsigned worker) {
    (void)worker;
    const bpt_conv_copies *c = arg;
    const bool two = c->has_backward && c->step->trains;
    bpt_bf16 *backward = two ? bpt_at(c->blocks, c->backward) : NULL;
    c->copy(&c->n, bpt_at(c->blocks, c->weights), bpt_at(c->blocks, c->forward), backward);
    return BPT_OK;
}

/* Whether they are what the copies are made from, and the copy what the task makes. */
static bpt_status suits(bpt_builder *b, const bpt_conv_problem *p, const bpt_layout *master,
                        const bpt_layout *layout, const int64_t *dims, bool *suits) {
    const bpt_layout *blocks;
    bpt_weight_pairs pairs;
    *suits = false;
    if (b->type != BPT_BF16 || bpt_cpu_bf16() != BPT_BF16_NATIVE) return BPT_OK;
    if (p->groups != 1 || !bpt_copy_weights_native()) return BPT_OK;
    if (p->k % BPT_COPY_LANES != 0 || p->c % BPT_COPY_LANES != 0) return BPT_OK;
    BPT_TRY(bpt_layout_weights_of_lanes(b->cpu, dims, BPT_COPY_LANES, &blocks));
    BPT_TRY(bpt_layout_pairs(b->cpu, layout, dims, &pairs));
    *suits = bpt_layout_equal(master, blocks) && pairs == BPT_PAIRS_OF_INPUTS;
    return BPT_OK;
}

bpt_status bpt__conv_copies_plan(const bpt_layer *l, bpt_builder *b, const bpt_conv_problem *p,
                                 const bpt_layout *layout, bpt_conv_copies **copies,
                                 bpt_weights_view *view) {
    const bpt_weight_plan *master = &b->weights[l->first_segment];
    const int64_t dims[] = {p->k, p->c, p->r, p->s};
    bpt_conv_copies *c;
    bool suitable;
    *copies = NULL;
    BPT_TRY(suits(b, p, master->layout, layout, dims, &suitable));
    if (!suitable) return BPT_OK;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &c));
    *c = (bpt_conv_copies){
        .blocks = b->blocks,
        .step = b->step,
        .copy = bpt_copy_weights_native(),
        .n = {p->k / BPT_COPY_LANES, p->c / BPT_COPY_LANES, p->r * p->s, false},
        .weights = master->master,
        .forward = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(layout)),
    };
    memcpy(c->dims, dims, sizeof dims);
    BPT_TRY(bpt_builder_task(b, BPT_PHASE_FORWARD, run, c,
                             (bpt_task_info){"reorder weights", l->name},
                             BPT_PLACES(c->weights, c->forward), (bpt_deps){0}, &c->ready));
    *view = (bpt_weights_view){layout, c->forward, c->ready};
    *copies = c;
    return bpt_builder_weights_read(b, l->first_segment, c->ready);
}

bpt_status bpt__conv_copies_add(bpt_builder *b, bpt_conv_copies *c, const bpt_layout *layout,
                                bpt_weights_view *view) {
    bpt_weight_pairs pairs;
    if (!c) return BPT_OK;
    BPT_TRY(bpt_layout_pairs(b->cpu, layout, c->dims, &pairs));
    if (pairs != BPT_PAIRS_OF_OUTPUTS && pairs != BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST) return BPT_OK;
    c->backward = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bpt_layout_bytes(layout));
    c->n.inputs_first = pairs == BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST;
    c->has_backward = true;
    *view = (bpt_weights_view){layout, c->backward, c->ready};
    return BPT_OK;
}
