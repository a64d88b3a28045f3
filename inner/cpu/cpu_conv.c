/* Convolution: oneDNN's direct kernels, or ours of Winograd's algorithm (cpu_winograd.h) where the
 * problem says so. */
#include "base/integers.h"
#include "inner/cpu/cpu_winograd.h"

#include <string.h>

typedef struct {
    const bpt__md *src, *weights, *bias, *dst; /* bias: NULL if there is none */
    dnnl_dim_t pad_end[BPT__N_SPATIAL];
    dnnl_dim_t dilates[BPT__N_SPATIAL]; /* as oneDNN counts: 0 is dense */
} conv_mds;

int bpt_conv_weight_dims(const bpt_conv_problem *p, int64_t *dims) {
    int n = 0;
    if (p->groups > 1) dims[n++] = p->groups;
    dims[n++] = p->k / p->groups;
    dims[n++] = p->c / p->groups;
    dims[n++] = p->r;
    dims[n++] = p->s;
    return n;
}

bpt_status bpt_cpu_conv_plain_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_layout **out) {
    int64_t dims[5];
    const int n_dims = bpt_conv_weight_dims(p, dims);
    return bpt_layout_plain(cpu, BPT_F32, dims, n_dims, out);
}

bpt_status bpt_cpu_conv_lanes(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                              const bpt_layout *dst, int64_t *lanes) {
    int64_t of_dst;
    BPT_TRY(bpt_layout_lanes(cpu, src, (int64_t[]){p->n, p->c, p->h, p->w}, lanes));
    BPT_TRY(bpt_layout_lanes(cpu, dst, (int64_t[]){p->n, p->k, p->p, p->q}, &of_dst));
    if ((*lanes != 8 && *lanes != 16) || *lanes != of_dst) *lanes = 0;
    return BPT_OK;
}

/* Others are rare, and backward data would take the pad at the end for that at the begin. */
static bool has_winograd_pads(const bpt_conv_problem *p) {
    enum { MAX_PAD = 1 };
    dnnl_dim_t pad_end[BPT__N_SPATIAL];
    bpt__pad_end(p, pad_end);
    for (int i = 0; i < BPT__N_SPATIAL; i++)
        if (p->pad[i] != pad_end[i] || p->pad[i] > MAX_PAD) return false;
    return true;
}

static int64_t n_patches(const bpt_conv_problem *p) {
    const int64_t side = bpt_winograd_patch(p->type);
    return p->n * bpt_quotient_up(p->p, side) * bpt_quotient_up(p->q, side);
}

/* What is transformed of a sample at least, each patch and filter as floats, is in memory that
 * every worker has of its own, for weights' gradients all filters twice: the product, and where it
 * is made in ranges, factors that are no larger. With 8 MiB besides it is 128 MiB at most. */
static bool fits_winograd_scratch(const bpt_conv_problem *p) {
    enum { MAX_BYTES = 120 << 20 };
    const int64_t bytes = bpt_winograd_values(p->type) * (int64_t)sizeof(float);
    const int64_t values = n_patches(p) / p->n * (p->c + p->k) + 2 * p->c * p->k;
    return values <= MAX_BYTES / bytes;
}

/* Fewer patches do not make up for the larger weights, fewer channels not for transforming the
 * patches (docs/decisions.md). */
bool bpt_conv_suits_winograd(const bpt_conv_problem *p) {
    enum { MIN_CHANNELS = 32, MIN_CHANNELS_BF16 = 64, MIN_PATCHES = 16, MIN_PATCHES_BF16 = 128 };
    const bool small = p->type == BPT_BF16;
    const int64_t patches = n_patches(p), side = bpt_winograd_patch(p->type);
    const int64_t channels = small ? MIN_CHANNELS_BF16 : MIN_CHANNELS;
    const bool dense = p->groups == 1 && p->dilation[0] == 1 && p->dilation[1] == 1;
    const bool steps_by_one = p->stride[0] == 1 && p->stride[1] == 1;
    return p->r == 3 && p->s == 3 && dense && steps_by_one && has_winograd_pads(p) &&
           p->c >= channels && p->k >= channels &&
           patches >= (small ? MIN_PATCHES_BF16 : MIN_PATCHES) &&
           2 * p->n * p->p * p->q >= patches * side * side;
}

/* The given layout, or one that oneDNN chooses. */
static bpt_status choose(bpt_cpu *cpu, bpt_value_type type, const int64_t *dims, int n_dims,
                         const bpt_layout *given, const bpt__md **md) {
    if (!given) BPT_TRY(bpt__layout_by_tag(cpu, type, dims, n_dims, dnnl_format_tag_any, &given));
    *md = given->md;
    return BPT_OK;
}

/* @param weights_type of WEIGHTS, or of DIFF_WEIGHTS */
static bpt_status describe(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                           bpt_value_type weights_type, const bpt_layout *weights,
                           const bpt_layout *dst, conv_mds *m) {
    const int64_t src_dims[] = {p->n, p->c, p->h, p->w};
    int64_t weight_dims[5];
    const int n_weight_dims = bpt_conv_weight_dims(p, weight_dims);
    const int64_t dst_dims[] = {p->n, p->k, p->p, p->q};
    const bpt_layout *bias;
    BPT_TRY(choose(cpu, p->type, src_dims, 4, src, &m->src));
    BPT_TRY(choose(cpu, weights_type, weight_dims, n_weight_dims, weights, &m->weights));
    BPT_TRY(choose(cpu, p->type, dst_dims, 4, dst, &m->dst));
    BPT_TRY(bpt_layout_plain(cpu, BPT_F32, &p->k, 1, &bias));
    m->bias = p->bias ? bias->md : NULL;
    bpt__pad_end(p, m->pad_end);
    for (int i = 0; i < BPT__N_SPATIAL; i++) m->dilates[i] = p->dilation[i] - 1;
    return BPT_OK;
}

/* ---- descriptors: which kernel it is and the layouts it takes, before any code is made ---- */

static bpt_status no_kernel(void) {
    return bpt_fail(BPT_EBACKEND, "oneDNN has no kernel for a convolution");
}

/* That there is no such kernel is an answer, NULL; all else that goes wrong is an error. */
static bpt_status answer(dnnl_status_t code, const char *call, dnnl_primitive_desc_t *pd) {
    if (code != dnnl_success) *pd = NULL;
    return code == dnnl_unimplemented ? BPT_OK : bpt__dnnl_check(code, call);
}

/* @param[out] pd NULL if there is no such kernel; likewise below */
static bpt_status forward_pd(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                             const bpt_layout *weights, const bpt_layout *dst,
                             dnnl_primitive_desc_t *pd) {
    conv_mds m;
    BPT_TRY(describe(cpu, p, src, p->type, weights, dst, &m));
    const dnnl_status_t code = dnnl_convolution_forward_primitive_desc_create(
        pd, cpu->engine, dnnl_forward_training, dnnl_convolution_direct, m.src, m.weights, m.bias,
        m.dst, p->stride, m.dilates, p->pad, m.pad_end, p->relu ? cpu->attr_relu : cpu->attr);
    return answer(code, "convolution_forward_primitive_desc_create", pd);
}

static bpt_status backward_data_pd(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                   const bpt_layout *weights, const bpt_layout *dst,
                                   const_dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *pd) {
    conv_mds m;
    BPT_TRY(describe(cpu, p, src, p->type, weights, dst, &m));
    const dnnl_status_t code = dnnl_convolution_backward_data_primitive_desc_create(
        pd, cpu->engine, dnnl_convolution_direct, m.src, m.weights, m.dst, p->stride, m.dilates,
        p->pad, m.pad_end, forward, cpu->attr);
    return answer(code, "convolution_backward_data_primitive_desc_create", pd);
}

/* oneDNN's kernels of weights' gradients in bfloat16 turn the source in scratch memory and, where
 * strides are wider than a row or pads higher than the image, read there or behind the source what
 * nobody has written (docs/decisions.md). They do not take the plain order of weights, which leaves
 * matrix products.
 */
static bool reads_unwritten_scratch(const bpt_conv_problem *p) {
    return p->type == BPT_BF16 && (p->stride[1] > p->w || p->pad[0] > p->h);
}

/* With windows that leave values out these kernels have wrong gradients of channels last, where
 * rows are long (docs/decisions.md). Of blocks of channels they are right. */
static bpt_status errs_in_order(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                bool *errs) {
    const bpt_layout *last;
    *errs = false;
    if (p->type != BPT_BF16 || (p->dilation[0] == 1 && p->dilation[1] == 1) || !src) return BPT_OK;
    BPT_TRY(bpt_layout_channels_last(cpu, p->type, (int64_t[]){p->n, p->c, p->h, p->w}, &last));
    *errs = bpt_layout_equal(src, last);
    return BPT_OK;
}

static bpt_status backward_weights_pd(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_layout *src, const bpt_layout *weights,
                                      const bpt_layout *dst, const_dnnl_primitive_desc_t forward,
                                      dnnl_primitive_desc_t *pd) {
    conv_mds m;
    const bpt_layout *given = weights;
    bool errs;
    *pd = NULL;
    BPT_TRY(errs_in_order(cpu, p, src, &errs));
    if (errs || reads_unwritten_scratch(p)) BPT_TRY(bpt_cpu_conv_plain_weights(cpu, p, &weights));
    if (given && !bpt_layout_equal(given, weights)) return BPT_OK;
    BPT_TRY(describe(cpu, p, src, BPT_F32, weights, dst, &m));
    const dnnl_status_t code = dnnl_convolution_backward_weights_primitive_desc_create(
        pd, cpu->engine, dnnl_convolution_direct, m.src, m.weights, m.bias, m.dst, p->stride,
        m.dilates, p->pad, m.pad_end, forward, cpu->attr);
    return answer(code, "convolution_backward_weights_primitive_desc_create", pd);
}

/* ---- what there is for all passes of a layer ---- */

enum { N_PASSES = 3 }; /* forward, backward weights, backward data */

static bpt_status operand(bpt_cpu *cpu, const_dnnl_primitive_desc_t pd, int dnnl_arg,
                          const bpt_layout **out) {
    return bpt__layout_copy(cpu, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, dnnl_arg),
                            out);
}

/* Once the forward pass has the given layouts, or has chosen, the others have to take them.
 * @param[out] pds shape [N_PASSES], for release(), also after an error */
static bpt_status describe_passes(bpt_cpu *cpu, const bpt_conv_problem *p, bool backward_data,
                                  const bpt_layout *src, const bpt_layout *dst,
                                  dnnl_primitive_desc_t *pds) {
    for (int i = 0; i < N_PASSES; i++) pds[i] = NULL;
    BPT_TRY(forward_pd(cpu, p, src, NULL, dst, &pds[0]));
    if (!pds[0]) return BPT_OK;
    BPT_TRY(operand(cpu, pds[0], DNNL_ARG_SRC, &src));
    BPT_TRY(operand(cpu, pds[0], DNNL_ARG_DST, &dst));
    BPT_TRY(backward_weights_pd(cpu, p, src, NULL, dst, pds[0], &pds[1]));
    return backward_data ? backward_data_pd(cpu, p, src, NULL, dst, pds[0], &pds[2]) : BPT_OK;
}

static void release(dnnl_primitive_desc_t *pds) {
    for (int i = 0; i < N_PASSES; i++)
        if (pds[i]) dnnl_primitive_desc_destroy(pds[i]);
}

static bpt_conv_way way_of(const_dnnl_primitive_desc_t pd) {
    if (!pd || strncmp(bpt__implementation(pd), "ref", 3) == 0) return BPT_CONV_NAIVE;
    return strstr(bpt__implementation(pd), "gemm:") ? BPT_CONV_PRODUCTS : BPT_CONV_DIRECT;
}

bpt_status bpt_cpu_conv_ways(bpt_cpu *cpu, const bpt_conv_problem *p, bool backward_data,
                             const bpt_layout *src, const bpt_layout *dst, bpt_conv_ways *ways) {
    dnnl_primitive_desc_t pds[N_PASSES];
    *ways = (bpt_conv_ways){BPT_CONV_DIRECT, BPT_CONV_DIRECT, BPT_CONV_DIRECT};
    if (p->winograd) {
        int64_t lanes = 1;
        if (src && dst) BPT_TRY(bpt_cpu_conv_lanes(cpu, p, src, dst, &lanes));
        if (!lanes) *ways = (bpt_conv_ways){BPT_CONV_NAIVE, BPT_CONV_NAIVE, BPT_CONV_NAIVE};
        return BPT_OK;
    }
    const bpt_status status = describe_passes(cpu, p, backward_data, src, dst, pds);
    ways->forward = way_of(pds[0]);
    ways->backward_weights = way_of(pds[1]);
    if (backward_data) ways->backward_data = way_of(pds[2]);
    release(pds);
    return status;
}

/* ---- Winograd's algorithm ---- */

/* Ours were measured where vectors have the instructions; where matrices have them (AMX), direct
 * kernels gain more by these than Winograd's algorithm could. */
static bpt_status choose_for_bf16(bpt_cpu *cpu) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned amx = dnnl_cpu_isa_avx512_core_amx;
    if (bpt_cpu_bf16() != BPT_BF16_NATIVE || (has & amx) == amx) return BPT_OK;
    return bpt__winograd_has_products(cpu, BPT_BF16, &cpu->winograd[BPT_BF16]);
}

/* Ours were measured from AVX2 on. oneDNN 2 has some for AVX-512, which are no faster and do not
 * keep a sample's bits (docs/decisions.md). */
bpt_status bpt__choose_winograd(bpt_cpu *cpu) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa(), avx2 = dnnl_cpu_isa_avx2;
    BPT_TRY(choose_for_bf16(cpu));
    if ((has & avx2) != avx2) return BPT_OK;
    return bpt__winograd_has_products(cpu, BPT_F32, &cpu->winograd[BPT_F32]);
}

/* Ours takes the layouts that the direct kernel chooses. */
static bpt_status choose_layouts(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout **src,
                                 const bpt_layout **dst) {
    dnnl_primitive_desc_t pd;
    if (*src && *dst) return BPT_OK;
    BPT_TRY(forward_pd(cpu, p, *src, NULL, *dst, &pd));
    if (!pd) return no_kernel();
    bpt_status status = operand(cpu, pd, DNNL_ARG_SRC, src);
    if (status == BPT_OK) status = operand(cpu, pd, DNNL_ARG_DST, dst);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

bpt_status bpt_cpu_conv_has_winograd(bpt_cpu *cpu, const bpt_conv_problem *p, bool *has) {
    const bpt_layout *src = NULL, *dst = NULL;
    int64_t lanes;
    *has = false;
    if (!cpu->winograd[p->type] || !fits_winograd_scratch(p)) return BPT_OK;
    BPT_TRY(choose_layouts(cpu, p, &src, &dst));
    BPT_TRY(bpt_cpu_conv_lanes(cpu, p, src, dst, &lanes));
    *has = p->type == BPT_F32 ? lanes != 0 : lanes == BPT_WINOGRAD_MAX_LANES;
    return BPT_OK;
}

/* ---- parts ---- */

int64_t bpt_cpu_conv_part_samples(const bpt_conv_problem *p, int64_t wanted, int64_t most_parts) {
    if (!p->winograd) return wanted;
    return bpt_rounded_up(bpt_quotient_up(p->n, most_parts), bpt__winograd_product_samples(p));
}

bool bpt_cpu_conv_keeps_bits(const bpt_kernel *k) {
    return k->winograd || way_of(k->pd) != BPT_CONV_PRODUCTS;
}

/* ---- kernels ---- */

/* @param pd NULL if there is none */
static bpt_status create_kernel(bpt_cpu *cpu, const bpt__spec *spec, dnnl_primitive_desc_t pd,
                                const bpt_slot *slots, int n_slots, bpt_kernel **out) {
    if (!pd) return no_kernel();
    return bpt__kernel_create(cpu, spec, pd, slots, n_slots, out);
}

static bpt_status create_forward(bpt_cpu *cpu, const bpt__spec *spec, const bpt_conv_problem *p,
                                 const bpt_layout *src, const bpt_layout *weights,
                                 const bpt_layout *dst, bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_WEIGHTS, BPT_SLOT_DST, BPT_SLOT_BIAS};
    dnnl_primitive_desc_t pd;
    if (p->winograd) {
        if (!cpu->winograd[p->type]) return no_kernel();
        BPT_TRY(choose_layouts(cpu, p, &src, &dst));
        BPT_TRY(bpt__winograd_forward(cpu, p, src, weights, dst, out));
        (*out)->spec = *spec;
        return BPT_OK;
    }
    BPT_TRY(forward_pd(cpu, p, src, weights, dst, &pd));
    return create_kernel(cpu, spec, pd, slots, p->bias ? 4 : 3, out);
}

bpt_status bpt_cpu_conv_forward(bpt_cpu *cpu, const bpt_conv_problem *p, const bpt_layout *src,
                                const bpt_layout *weights, const bpt_layout *dst,
                                bpt_kernel **out) {
    bpt__spec spec = bpt__spec_of(BPT__CONV_FORWARD);
    bpt__spec_problem(&spec, p);
    bpt__spec_layout(&spec, src);
    bpt__spec_layout(&spec, weights);
    bpt__spec_layout(&spec, dst);
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    return *out ? BPT_OK : create_forward(cpu, &spec, p, src, weights, dst, out);
}

static bpt__spec backward_spec(bpt__operation operation, const bpt_conv_problem *p,
                               const bpt_kernel *forward, const bpt_layout *weights) {
    bpt__spec spec = bpt__spec_of(operation);
    bpt__spec_problem(&spec, p);
    bpt__spec_kernel(&spec, forward);
    bpt__spec_layout(&spec, weights);
    return spec;
}

/* oneDNN keeps the code of kernels for all of the process, and takes orders of activations for the
 * same where all that differs are strides over a single value. Of kernels that choose the order of
 * their weights by that of such activations one is then given the code of the other, for another
 * order of weights: so these are named, once they are chosen. */
static bool has_one_order(const bpt_conv_problem *p) {
    return (p->c == 1 || p->h * p->w == 1) && (p->k == 1 || p->p * p->q == 1);
}

/* @param[in,out] pd whose weights were to be chosen; NULL behind it: to be made with these
 * @param[out] weights NULL: it may stay as it is */
static bpt_status name_weights(bpt_cpu *cpu, const bpt_conv_problem *p, int dnnl_arg,
                               dnnl_primitive_desc_t *pd, const bpt_layout **weights) {
    *weights = NULL;
    if (!*pd || !has_one_order(p)) return BPT_OK;
    const bpt_status status = operand(cpu, *pd, dnnl_arg, weights);
    dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return status;
}

bpt_status bpt_cpu_conv_backward_data(bpt_cpu *cpu, const bpt_conv_problem *p,
                                      const bpt_kernel *forward, const bpt_layout *weights,
                                      bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_DIFF_DST, BPT_SLOT_WEIGHTS, BPT_SLOT_DIFF_SRC};
    const bpt__spec spec = backward_spec(BPT__CONV_BACKWARD_DATA, p, forward, weights);
    dnnl_primitive_desc_t pd;
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    if (p->winograd) {
        BPT_TRY(bpt__winograd_backward_data(cpu, p, forward, weights, out));
        (*out)->spec = spec;
        return BPT_OK;
    }
    const bpt_layout *src = forward->layouts[BPT_SLOT_SRC], *dst = forward->layouts[BPT_SLOT_DST];
    BPT_TRY(backward_data_pd(cpu, p, src, weights, dst, forward->pd, &pd));
    if (!weights) BPT_TRY(name_weights(cpu, p, DNNL_ARG_WEIGHTS, &pd, &weights));
    if (!pd && weights) BPT_TRY(backward_data_pd(cpu, p, src, weights, dst, forward->pd, &pd));
    return create_kernel(cpu, &spec, pd, slots, 3, out);
}

bpt_status bpt_cpu_conv_backward_weights(bpt_cpu *cpu, const bpt_conv_problem *p,
                                         const bpt_kernel *forward, const bpt_layout *weights,
                                         bpt_kernel **out) {
    static const bpt_slot slots[] = {BPT_SLOT_SRC, BPT_SLOT_DIFF_DST, BPT_SLOT_DIFF_WEIGHTS,
                                     BPT_SLOT_DIFF_BIAS};
    const bpt__spec spec = backward_spec(BPT__CONV_BACKWARD_WEIGHTS, p, forward, weights);
    dnnl_primitive_desc_t pd;
    BPT_TRY(bpt__kernel_twin(cpu, &spec, out));
    if (*out) return BPT_OK;
    if (p->winograd) {
        BPT_TRY(bpt__winograd_backward_weights(cpu, p, forward, weights, out));
        (*out)->spec = spec;
        return BPT_OK;
    }
    const bpt_layout *src = forward->layouts[BPT_SLOT_SRC], *dst = forward->layouts[BPT_SLOT_DST];
    BPT_TRY(backward_weights_pd(cpu, p, src, weights, dst, forward->pd, &pd));
    if (!weights) BPT_TRY(name_weights(cpu, p, DNNL_ARG_DIFF_WEIGHTS, &pd, &weights));
    if (!pd && weights) BPT_TRY(backward_weights_pd(cpu, p, src, weights, dst, forward->pd, &pd));
    return create_kernel(cpu, &spec, pd, slots, p->bias ? 4 : 3, out);
}
