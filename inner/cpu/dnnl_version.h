/** @file inner/cpu/dnnl_version.h
 * oneDNN's header, in one dialect: this folder is written to the C interface of oneDNN 3, and what
 * version 2 lacks of it is added here. No other file asks for the version.
 *
 * Version 3 hides memory descriptors behind a handle, which version 2 keeps in a transparent struct
 * by value; and it makes a primitive descriptor in one call, where version 2 first fills in an
 * operation descriptor. Functions that are added have the names, parameters and results of version
 * 3, as its manual describes them.
 *
 * Threads: as oneDNN's own functions. */
#ifndef BPT_INNER_DNNL_VERSION_H
#define BPT_INNER_DNNL_VERSION_H

#include <oneapi/dnnl/dnnl.h>

#include <stdbool.h>

/* Kernels must run on the thread that calls them, which omp_set_num_threads(1) ensures; other
 * thread pools would use all cores in each task. */
#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "bpt needs a oneDNN that was built for OpenMP (as Debian's and Ubuntu's are)"
#endif

/** A memory descriptor; always behind a pointer. */
#if DNNL_VERSION_MAJOR >= 3
typedef struct dnnl_memory_desc bpt__md;
#else
typedef dnnl_memory_desc_t bpt__md;
#endif

/** @return the type of the values that it describes */
dnnl_data_type_t bpt__md_type(const bpt__md *md);

/** Appends max(x, 0) to what a kernel does last. Version 2 wants a factor too. */
dnnl_status_t bpt__post_ops_append_relu(dnnl_post_ops_t ops);

/** Appends that a kernel adds its result to what is there. */
dnnl_status_t bpt__post_ops_append_sum(dnnl_post_ops_t ops);

/** How far the values of a tensor are apart along each dimension.
 * @param[out] dims,strides in values
 * @return false if its order has blocks: then no stride tells */
bool bpt__md_strides(const bpt__md *md, dnnl_dims_t dims, dnnl_dims_t strides);

/** @return whether both describe the same memory by the same numbers: strides of dimensions with
 * one element too, which dnnl_memory_desc_equal() passes over and kernels look at */
bool bpt__md_same(const bpt__md *a, const bpt__md *b);

/** Describes a part of a tensor as one that begins with the part's first value; between its values
 * may be gaps.
 * @param dims,from of the part and where it begins
 * @param[out] md     caller owns
 * @param[out] offset of its first value, in values
 * @return dnnl_success, dnnl_invalid_arguments or dnnl_unimplemented (the order of the tensor does
 *         not allow it: the part would cut a block), dnnl_out_of_memory */
dnnl_status_t bpt__md_part(const bpt__md *whole, const dnnl_dims_t dims, const dnnl_dims_t from,
                           bpt__md **md, dnnl_dim_t *offset);

#if DNNL_VERSION_MAJOR < 3

dnnl_status_t dnnl_memory_desc_create_with_tag(bpt__md **md, int n_dims, const dnnl_dims_t dims,
                                               dnnl_data_type_t type, dnnl_format_tag_t tag);
dnnl_status_t dnnl_memory_desc_create_with_strides(bpt__md **md, int n_dims, const dnnl_dims_t dims,
                                                   dnnl_data_type_t type,
                                                   const dnnl_dims_t strides);
dnnl_status_t dnnl_memory_desc_clone(bpt__md **md, const bpt__md *existing);
dnnl_status_t dnnl_memory_desc_destroy(bpt__md *md);

dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *weights, const bpt__md *bias,
    const bpt__md *dst, const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t padding_l, const dnnl_dims_t padding_r, const_dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *weights, const bpt__md *diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind, const bpt__md *src,
    const bpt__md *diff_weights, const bpt__md *diff_bias, const bpt__md *diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr);

dnnl_status_t dnnl_pooling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilation, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_pooling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilation, const dnnl_dims_t padding_l,
    const dnnl_dims_t padding_r, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr);

dnnl_status_t
dnnl_eltwise_forward_primitive_desc_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           dnnl_prop_kind_t prop_kind, dnnl_alg_kind_t alg_kind,
                                           const bpt__md *src, const bpt__md *dst, float alpha,
                                           float beta, const_dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_eltwise_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const bpt__md *data, float alpha, float beta,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr);

dnnl_status_t dnnl_lrn_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_alg_kind_t alg_kind, const bpt__md *src, const bpt__md *dst, dnnl_dim_t local_size,
    float alpha, float beta, float k, const_dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_lrn_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg_kind,
    const bpt__md *diff_src, const bpt__md *diff_dst, const bpt__md *src, dnnl_dim_t local_size,
    float alpha, float beta, float k, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr);

dnnl_status_t dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                const bpt__md *src, const bpt__md *weights,
                                                const bpt__md *bias, const bpt__md *dst,
                                                const_dnnl_primitive_attr_t attr);

#endif
#endif
