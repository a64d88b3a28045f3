#include "inner/layers/conv_parts.h"

#include "base/log.h"

#include <string.h>

/* What a chunk's parts are made from. */
typedef struct {
    bpt_builder *b;
    const bpt_conv_whole *whole;
    const bpt_conv_problem *problem;
    bpt_kernel *kernel;
} chunk_step;

static const bpt_slot src_slots[] = {BPT_SLOT_SRC, BPT_SLOT_DIFF_SRC, BPT_SLOT_SRC};
static const bpt_slot dst_slots[] = {BPT_SLOT_DST, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_DST};

/* ---- where a part's operands are ---- */

static bpt_status place_source(const chunk_step *s, const bpt_conv_part *part, bpt_part *out) {
    const bpt_conv_problem *w = s->problem, *p = &part->problem;
    return bpt_layout_part(s->b->cpu, bpt_kernel_layout(s->kernel, src_slots[s->whole->step]),
                           (int64_t[]){w->n, w->c, w->h, w->w}, part->in,
                           (int64_t[]){p->n, p->c, p->h, p->w}, out);
}

static bpt_status place_destination(const chunk_step *s, const bpt_conv_part *part, bpt_part *out) {
    const bpt_conv_problem *w = s->problem, *p = &part->problem;
    return bpt_layout_part(s->b->cpu, bpt_kernel_layout(s->kernel, dst_slots[s->whole->step]),
                           (int64_t[]){w->n, w->k, w->p, w->q}, part->out,
                           (int64_t[]){p->n, p->k, p->p, p->q}, out);
}

/* Copies of weights have other dimensions, and are taken as a whole or not at all. */
static bpt_status place_weights(const chunk_step *s, const bpt_conv_part *part, bpt_part *out) {
    int64_t dims[5];
    const bool all = part->problem.k == s->problem->k && part->problem.c == s->problem->c;
    if (bpt_layout_is_copy(s->whole->weights)) {
        *out = (bpt_part){all ? s->whole->weights : NULL, 0};
        return BPT_OK;
    }
    bpt_conv_weight_dims(&part->problem, dims);
    return bpt_layout_part_with_gaps(s->b->cpu, s->whole->weights, part->weights, dims, out);
}

/* ---- its kernel ---- */

/* Backward kernels are described by a forward one, which never runs. */
static bpt_status create_kernel(const chunk_step *s, const bpt_conv_piece *piece,
                                const bpt_layout *src, const bpt_layout *dst, bpt_kernel **out) {
    const bpt_conv_problem *p = &piece->part.problem;
    bpt_kernel *forward;
    if (s->whole->step == BPT_CONV_FORWARD)
        return bpt_cpu_conv_forward(s->b->cpu, p, src, piece->weights.layout, dst, out);
    BPT_TRY(bpt_cpu_conv_forward(s->b->cpu, p, src, NULL, dst, &forward));
    if (s->whole->step == BPT_CONV_BACKWARD_WEIGHTS)
        return bpt_cpu_conv_backward_weights(s->b->cpu, p, forward, piece->weights.layout, out);
    const bpt_layout **weights = &s->whole->chosen[piece->part.channel_range];
    BPT_TRY(bpt_cpu_conv_backward_data(s->b->cpu, p, forward, *weights, out));
    *weights = bpt_kernel_layout(*out, BPT_SLOT_WEIGHTS);
    return BPT_OK;
}

/* @param[out] why not, or NULL */
static bpt_status create_piece(const chunk_step *s, bpt_cut cut, size_t i, bpt_conv_piece *piece,
                               const char **why) {
    bpt_part src, dst;
    *why = "there are too few channels or rows";
    if (!bpt_cut_part(s->problem, s->whole->step, cut, i, &piece->part)) return BPT_OK;
    *why = "its activations lie in an order that keeps parts apart";
    BPT_TRY(place_source(s, &piece->part, &src));
    BPT_TRY(place_destination(s, &piece->part, &dst));
    if (!src.layout || !dst.layout) return BPT_OK;
    *why = "the order of its weights does not allow it";
    BPT_TRY(place_weights(s, &piece->part, &piece->weights));
    if (!piece->weights.layout) return BPT_OK;
    *why = "parts have no such kernels as the whole";
    const bpt_status status = create_kernel(s, piece, src.layout, dst.layout, &piece->kernel);
    if (status == BPT_EBACKEND) return BPT_OK; /* it takes no such part */
    BPT_TRY(status);
    if (strcmp(bpt_kernel_implementation(piece->kernel), bpt_kernel_implementation(s->kernel)) != 0)
        return BPT_OK;
    *why = NULL;
    piece->src = src.offset;
    piece->dst = dst.offset;
    piece->bias = (size_t)piece->part.out[1] * sizeof(float);
    return BPT_OK;
}

static bpt_status leave_whole(bpt_builder *b, const bpt_conv_whole *whole, bpt_conv_pieces *out) {
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(BPT_BUILDER_NEW(b, 1, &out[c].items));
        out[c].items[0] = (bpt_conv_piece){.part = {.problem = whole->problems[c]},
                                           .kernel = whole->kernels[c],
                                           .weights = {whole->weights, 0}};
        out[c].n = out[c].n_partials = 1;
    }
    if (whole->chosen) whole->chosen[0] = bpt_kernel_layout(whole->kernels[0], BPT_SLOT_WEIGHTS);
    return BPT_OK;
}

static bpt_status cut_chunk(const chunk_step *s, bpt_cut cut, bpt_conv_pieces *out,
                            const char **why) {
    const int64_t n = s->problem->n;
    out->n = bpt_cut_parts(cut, n);
    out->n_partials = bpt_cut_partials(cut, n);
    BPT_TRY(BPT_BUILDER_NEW(s->b, out->n, &out->items));
    *why = NULL;
    for (size_t i = 0; i < out->n && !*why; i++)
        BPT_TRY(create_piece(s, bpt_cut_normal(cut, n), i, &out->items[i], why));
    return BPT_OK;
}

bpt_status bpt__conv_pieces(bpt_builder *b, const bpt_conv_whole *whole, bpt_cut cut,
                            bpt_conv_pieces *out) {
    const char *why = NULL;
    bool cuts = false;
    for (size_t c = 0; c < b->n_chunks; c++)
        cuts = cuts || !bpt_cut_is_whole(cut, whole->problems[c].n);
    if (!cuts) return leave_whole(b, whole, out);
    for (int i = 0; whole->chosen && i < BPT_MAX_CUT; i++) whole->chosen[i] = NULL;
    if (whole->chosen && cut.channels <= 1)
        whole->chosen[0] = bpt_kernel_layout(whole->kernels[0], BPT_SLOT_WEIGHTS);
    for (size_t c = 0; c < b->n_chunks && !why; c++) {
        const chunk_step chunk = {b, whole, &whole->problems[c], whole->kernels[c]};
        BPT_TRY(cut_chunk(&chunk, cut, &out[c], &why));
    }
    if (!why) return BPT_OK;
    bpt_debug("layer %s: %s stays whole: %s", whole->label, bpt_conv_step_name(whole->step), why);
    return leave_whole(b, whole, out);
}
