/* How tensors lie in memory. */
#include "base/memory.h"
#include "inner/cpu/cpu_private.h"
#include "inner/loops/winograd_loops.h"

#include <string.h>

/* A layout that has no descriptor yet; bpt_cpu_free() releases it, also after an error. */
static bpt_status add_layout(bpt_layout **list, bpt_layout **out) {
    BPT_TRY(BPT_NEW("layout", 1, out));
    (*out)->next = *list;
    *list = *out;
    return BPT_OK;
}

static dnnl_data_type_t dnnl_type(bpt_value_type type) {
    return type == BPT_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Tiles that follow each other have equal layouts. */
static const bpt_layout *find_recent(const bpt_cpu *cpu, const bpt__md *md) {
    enum { LOOKED_AT = 32 };
    const bpt_layout *l = cpu->layouts;
    for (int i = 0; i < LOOKED_AT && l; i++, l = l->next)
        if (l->md && !bpt_layout_is_copy(l) && bpt__md_same(l->md, md)) return l;
    return NULL;
}

bpt_status bpt__layout_copy(bpt_cpu *cpu, const bpt__md *md, const bpt_layout **out) {
    bpt_layout *l;
    *out = find_recent(cpu, md);
    if (*out) return BPT_OK;
    BPT_TRY(add_layout(&cpu->layouts, &l));
    BPT__DNNL_TRY(dnnl_memory_desc_clone(&l->md, md));
    l->type = bpt__md_type(md) == dnnl_bf16 ? BPT_BF16 : BPT_F32;
    *out = l;
    return BPT_OK;
}

/* One that was made from the same as @p like. */
static const bpt_layout *find_named(const bpt_cpu *cpu, const bpt_layout *like) {
    for (const bpt_layout *l = cpu->named; l; l = l->next)
        if (l->tag == like->tag && l->filters == like->filters && l->type == like->type &&
            l->n_dims == like->n_dims &&
            memcmp(l->dims, like->dims, (size_t)like->n_dims * sizeof *l->dims) == 0)
            return l;
    return NULL;
}

/* Last of all: one without a descriptor has no dimensions and is not found. */
static void name_layout(bpt_layout *l, const bpt_layout *like) {
    l->type = like->type;
    l->filters = like->filters;
    l->tag = like->tag;
    l->n_dims = like->n_dims;
    memcpy(l->dims, like->dims, sizeof l->dims);
}

bpt_status bpt__layout_by_tag(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int n_dims,
                              dnnl_format_tag_t tag, const bpt_layout **out) {
    bpt_layout *l, like = {.type = type, .tag = tag, .n_dims = n_dims};
    memcpy(like.dims, dims, (size_t)n_dims * sizeof *dims);
    *out = find_named(cpu, &like);
    if (*out) return BPT_OK;
    BPT_TRY(add_layout(&cpu->named, &l));
    BPT__DNNL_TRY(dnnl_memory_desc_create_with_tag(&l->md, n_dims, dims, dnnl_type(type), tag));
    name_layout(l, &like);
    *out = l;
    return BPT_OK;
}

bpt_status bpt__layout_by_strides(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                  const int64_t *strides, int n_dims, const bpt_layout **out) {
    bpt_layout *l;
    BPT_TRY(add_layout(&cpu->layouts, &l));
    BPT__DNNL_TRY(
        dnnl_memory_desc_create_with_strides(&l->md, n_dims, dims, dnnl_type(type), strides));
    l->type = type;
    *out = l;
    return BPT_OK;
}

bpt_status bpt__layout_of_filters(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                  bpt__filters filters, const bpt_layout **out) {
    enum { N = 3 };
    const int64_t strides[N] = {bpt_winograd_plane(type, dims[1] * dims[2]), dims[2], 1};
    bpt_layout *l, like = {.type = type, .filters = filters, .n_dims = N};
    memcpy(like.dims, dims, N * sizeof *dims);
    *out = find_named(cpu, &like); /* kernels of the same layout are twins */
    if (*out) return BPT_OK;
    BPT_TRY(add_layout(&cpu->named, &l));
    BPT__DNNL_TRY(dnnl_memory_desc_create_with_strides(&l->md, N, dims, dnnl_type(type), strides));
    name_layout(l, &like);
    *out = l;
    return BPT_OK;
}

bool bpt_layout_is_copy(const bpt_layout *l) {
    return l->filters != BPT__FILTERS_AS_THEY_ARE;
}

bpt_status bpt_layout_plain(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int n_dims,
                            const bpt_layout **out) {
    static const dnnl_format_tag_t tags[] = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    return bpt__layout_by_tag(cpu, type, dims, n_dims, tags[n_dims - 1], out);
}

bpt_value_type bpt_layout_type(const bpt_layout *l) {
    return l->type;
}

size_t bpt_layout_bytes(const bpt_layout *l) {
    return dnnl_memory_desc_get_size(l->md);
}

size_t bpt_layout_values(const bpt_layout *l) {
    return bpt_layout_bytes(l) / bpt_value_bytes(l->type);
}

bool bpt_layout_equal(const bpt_layout *a, const bpt_layout *b) {
    return a->filters == b->filters && dnnl_memory_desc_equal(a->md, b->md);
}

/* ---- the order of an activation's channels ---- */

static dnnl_format_tag_t tag_of_lanes(int64_t lanes) {
    switch (lanes) {
    case 1:
        return dnnl_nchw;
    case 8:
        return dnnl_nChw8c;
    case 16:
        return dnnl_nChw16c;
    default:
        return dnnl_nhwc;
    }
}

bpt_status bpt_layout_of_lanes(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                               int64_t lanes, const bpt_layout **out) {
    return bpt__layout_by_tag(cpu, type, dims, 4, tag_of_lanes(lanes), out);
}

bpt_status bpt_layout_weights_of_lanes(bpt_cpu *cpu, const int64_t *dims, int64_t lanes,
                                       const bpt_layout **out) {
    return bpt__layout_by_tag(cpu, BPT_F32, dims, 4, lanes == 8 ? dnnl_OIhw8i8o : dnnl_OIhw16i16o,
                              out);
}

bpt_status bpt_layout_pairs(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                            bpt_weight_pairs *pairs) {
    static const struct {
        dnnl_format_tag_t tag;
        bpt_weight_pairs pairs;
    } known[] = {{dnnl_OIhw8i16o2i, BPT_PAIRS_OF_INPUTS},
                 {dnnl_OIhw8o16i2o, BPT_PAIRS_OF_OUTPUTS},
                 {dnnl_IOhw8o16i2o, BPT_PAIRS_OF_OUTPUTS_INPUTS_FIRST}};
    *pairs = BPT_PAIRS_OF_NOTHING;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const bpt_layout *candidate;
        BPT_TRY(bpt__layout_by_tag(cpu, BPT_BF16, dims, 4, known[i].tag, &candidate));
        if (bpt_layout_equal(l, candidate)) *pairs = known[i].pairs;
    }
    return BPT_OK;
}

bpt_status bpt_layout_channels_last(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims,
                                    const bpt_layout **out) {
    return bpt__layout_by_tag(cpu, type, dims, 4, dnnl_nhwc, out);
}

bpt_status bpt__layout_family(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                              dnnl_format_tag_t *tag, int64_t *lanes) {
    const int64_t known[] = {1, 16, 8, dims[1]};
    bool has_name = false;
    *lanes = 0;
    for (int i = 0; i < 4 && !has_name; i++) {
        const bpt_layout *candidate;
        const dnnl_format_tag_t name = i == 3 ? dnnl_nhwc : tag_of_lanes(known[i]);
        BPT_TRY(bpt__layout_by_tag(cpu, l->type, dims, 4, name, &candidate));
        if (!bpt_layout_equal(l, candidate)) continue;
        has_name = bpt__md_same(l->md, candidate->md);
        if (*lanes == 0 || has_name) *tag = name;
        if (*lanes == 0) *lanes = known[i];
    }
    return BPT_OK;
}

bpt_status bpt_layout_lanes(bpt_cpu *cpu, const bpt_layout *l, const int64_t *dims,
                            int64_t *lanes) {
    dnnl_format_tag_t tag;
    return bpt__layout_family(cpu, l, dims, &tag, lanes);
}
