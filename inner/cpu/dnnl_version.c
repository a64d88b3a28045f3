#include "inner/cpu/dnnl_version.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

#if DNNL_VERSION_MAJOR >= 3

dnnl_data_type_t bpt__md_type(const bpt__md *md) {
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_memory_desc_query(md, dnnl_query_data_type, &type);
    return type;
}

dnnl_status_t bpt__post_ops_append_relu(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t bpt__post_ops_append_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

bool bpt__md_strides(const bpt__md *md, dnnl_dims_t dims, dnnl_dims_t strides) {
    int n_dims = 0, n_blocks = 1;
    const dnnl_dims_t *of_dims, *of_strides;
    if (dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &n_blocks) != dnnl_success ||
        n_blocks > 0 || dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &n_dims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_dims, &of_dims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_strides, &of_strides) != dnnl_success)
        return false;
    memcpy(dims, *of_dims, (size_t)n_dims * sizeof *dims);
    memcpy(strides, *of_strides, (size_t)n_dims * sizeof *strides);
    return true;
}

bool bpt__md_same(const bpt__md *a, const bpt__md *b) {
    int n_dims = 0;
    const dnnl_dims_t *of_a, *of_b;
    if (!dnnl_memory_desc_equal(a, b) ||
        dnnl_memory_desc_query(a, dnnl_query_ndims_s32, &n_dims) != dnnl_success ||
        dnnl_memory_desc_query(a, dnnl_query_strides, &of_a) != dnnl_success ||
        dnnl_memory_desc_query(b, dnnl_query_strides, &of_b) != dnnl_success)
        return false;
    return memcmp(*of_a, *of_b, (size_t)n_dims * sizeof **of_a) == 0;
}

/* Only from the beginning of a tensor does a part have no offset of its own. */
dnnl_status_t bpt__md_part(const bpt__md *whole, const dnnl_dims_t dims, const dnnl_dims_t from,
                           bpt__md **md, dnnl_dim_t *offset) {
    static const dnnl_dims_t begin = {0};
    bpt__md *there;
    dnnl_status_t status = dnnl_memory_desc_create_submemory(&there, whole, dims, from);
    if (status != dnnl_success) return status;
    status = dnnl_memory_desc_query(there, dnnl_query_submemory_offset_s64, offset);
    dnnl_memory_desc_destroy(there);
    if (status != dnnl_success) return status;
    return dnnl_memory_desc_create_submemory(md, whole, dims, begin);
}

#else

dnnl_data_type_t bpt__md_type(const bpt__md *md) {
    return md->data_type;
}

dnnl_status_t bpt__post_ops_append_relu(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t bpt__post_ops_append_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

/* ---- memory descriptors ---- */

bool bpt__md_strides(const bpt__md *md, dnnl_dims_t dims, dnnl_dims_t strides) {
    const size_t bytes = (size_t)md->ndims * sizeof *dims;
    if (md->format_kind != dnnl_blocked || md->format_desc.blocking.inner_nblks > 0) return false;
    memcpy(dims, md->dims, bytes);
    memcpy(strides, md->format_desc.blocking.strides, bytes);
    return true;
}

bool bpt__md_same(const bpt__md *a, const bpt__md *b) {
    if (!dnnl_memory_desc_equal(a, b)) return false;
    return a->format_kind != dnnl_blocked ||
           memcmp(a->format_desc.blocking.strides, b->format_desc.blocking.strides,
                  (size_t)a->ndims * sizeof(dnnl_dim_t)) == 0;
}

/* Hands over a new descriptor if the call that filled it in succeeded. */
static dnnl_status_t hand_over(dnnl_status_t status, bpt__md *md, bpt__md **out) {
    if (status == dnnl_success)
        *out = md;
    else
        bpt_free(md);
    return status;
}

dnnl_status_t dnnl_memory_desc_create_with_tag(bpt__md **out, int n_dims, const dnnl_dims_t dims,
                                               dnnl_data_type_t type, dnnl_format_tag_t tag) {
    bpt__md *md;
    if (BPT_NEW("memory descriptor", 1, &md) != BPT_OK) return dnnl_out_of_memory;
    return hand_over(dnnl_memory_desc_init_by_tag(md, n_dims, dims, type, tag), md, out);
}

dnnl_status_t dnnl_memory_desc_create_with_strides(bpt__md **out, int n_dims,
                                                   const dnnl_dims_t dims, dnnl_data_type_t type,
                                                   const dnnl_dims_t strides) {
    bpt__md *md;
    if (BPT_NEW("memory descriptor", 1, &md) != BPT_OK) return dnnl_out_of_memory;
    return hand_over(dnnl_memory_desc_init_by_strides(md, n_dims, dims, type, strides), md, out);
}

dnnl_status_t dnnl_memory_desc_clone(bpt__md **out, const bpt__md *existing) {
    bpt__md *md;
    if (BPT_NEW("memory descriptor", 1, &md) != BPT_OK) return dnnl_out_of_memory;
    *md = *existing;
    *out = md;
    return dnnl_success;
}

dnnl_status_t dnnl_memory_desc_destroy(bpt__md *md) {
    bpt_free(md);
    return dnnl_success;
}

dnnl_status_t bpt__md_part(const bpt__md *whole, const dnnl_dims_t dims, const dnnl_dims_t from,
                           bpt__md **out, dnnl_dim_t *offset) {
    bpt__md *md;
    if (BPT_NEW("memory descriptor", 1, &md) != BPT_OK) return dnnl_out_of_memory;
    const dnnl_status_t status =
        hand_over(dnnl_memory_desc_init_submemory(md, whole, dims, from), md, out);
    if (status != dnnl_success) return status;
    *offset = md->offset0 - whole->offset0;
    md->offset0 = whole->offset0;
    return dnnl_success;
}

/* ---- primitive descriptors ---- */

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dnnl_status_t try_status = (call);                                                   \
        if (try_status != dnnl_success) return try_status;                                         \
    } while (0)

dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *weights, const bpt__md *bias,
    const bpt__md *dst, const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t padding_l, const dnnl_dims_t padding_r, const_dnnl_primitive_attr_t attr) {
    dnnl_convolution_desc_t op;
    TRY(dnnl_dilated_convolution_forward_desc_init(&op, prop_kind, alg_kind, src, weights, bias,
                                                   dst, strides, dilates, padding_l, padding_r));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *weights, const bpt__md *diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr) {
    dnnl_convolution_desc_t op;
    TRY(dnnl_dilated_convolution_backward_data_desc_init(&op, alg_kind, diff_src, weights, diff_dst,
                                                         strides, dilates, padding_l, padding_r));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind, const bpt__md *src,
    const bpt__md *diff_weights, const bpt__md *diff_bias, const bpt__md *diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr) {
    dnnl_convolution_desc_t op;
    TRY(dnnl_dilated_convolution_backward_weights_desc_init(&op, alg_kind, src, diff_weights,
                                                            diff_bias, diff_dst, strides, dilates,
                                                            padding_l, padding_r));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

dnnl_status_t dnnl_pooling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilation, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_attr_t attr) {
    dnnl_pooling_v2_desc_t op;
    TRY(dnnl_pooling_v2_forward_desc_init(&op, prop_kind, alg_kind, src, dst, strides, kernel,
                                          dilation, padding_l, padding_r));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

dnnl_status_t dnnl_pooling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilation, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr) {
    dnnl_pooling_v2_desc_t op;
    TRY(dnnl_pooling_v2_backward_desc_init(&op, alg_kind, diff_src, diff_dst, strides, kernel,
                                           dilation, padding_l, padding_r));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

/* Version 2 knows one descriptor for the values on both sides. */
dnnl_status_t
dnnl_eltwise_forward_primitive_desc_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           dnnl_prop_kind_t prop_kind, dnnl_alg_kind_t alg_kind,
                                           const bpt__md *src, const bpt__md *dst, float alpha,
                                           float beta, const_dnnl_primitive_attr_t attr) {
    assert(dnnl_memory_desc_equal(src, dst));
    (void)dst;
    dnnl_eltwise_desc_t op;
    TRY(dnnl_eltwise_forward_desc_init(&op, prop_kind, alg_kind, src, alpha, beta));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

dnnl_status_t dnnl_eltwise_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const bpt__md *data, float alpha, float beta,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
    assert(dnnl_memory_desc_equal(diff_src, diff_dst));
    (void)diff_src;
    dnnl_eltwise_desc_t op;
    TRY(dnnl_eltwise_backward_desc_init(&op, alg_kind, diff_dst, data, alpha, beta));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

dnnl_status_t dnnl_lrn_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *dst, dnnl_dim_t local_size,
    float alpha, float beta, float k, const_dnnl_primitive_attr_t attr) {
    assert(dnnl_memory_desc_equal(src, dst));
    (void)dst;
    dnnl_lrn_desc_t op;
    TRY(dnnl_lrn_forward_desc_init(&op, prop_kind, alg_kind, src, local_size, alpha, beta, k));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

dnnl_status_t dnnl_lrn_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const bpt__md *src, dnnl_dim_t local_size,
    float alpha, float beta, float k, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr) {
    assert(dnnl_memory_desc_equal(diff_src, diff_dst));
    (void)diff_src;
    dnnl_lrn_desc_t op;
    TRY(dnnl_lrn_backward_desc_init(&op, alg_kind, diff_dst, src, local_size, alpha, beta, k));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, hint);
}

dnnl_status_t dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                const bpt__md *src, const bpt__md *weights,
                                                const bpt__md *bias, const bpt__md *dst,
                                                const_dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t op;
    TRY(dnnl_matmul_desc_init(&op, src, weights, bias, dst));
    return dnnl_primitive_desc_create(pd, &op, attr, engine, NULL);
}

#endif
