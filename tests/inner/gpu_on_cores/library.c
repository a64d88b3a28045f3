/* inner/cuda/cuda_library.h without cuDNN and cuBLASLt. */
#include "base/memory.h"
#include "inner/cuda/cuda_choices.h"
#include "tests/inner/gpu_on_cores/host_work.h"
#include "tests/inner/gpu_on_cores/products.h"

#include <inttypes.h>
#include <stdio.h>

struct bpt_cuda_library {
    bool tf32;
    bpt__choices choices;
    unsigned n_measured;
    void *workspace;
};

/* Either kind, as it is run. */
struct bpt_cuda_conv {
    bpt_cuda_conv_problem problem;
    bpt_cuda_conv_step step;
    uint64_t ns;
};
struct bpt_cuda_product {
    bpt_cuda_product_problem problem;
    bpt_cuda_conv_step step;
    uint64_t ns;
};

typedef struct {
    const void *a, *b;
    const float *bias;
    void *out;
} operands;
typedef struct {
    struct bpt_cuda_conv conv;
    operands of;
} conv_call;
typedef struct {
    struct bpt_cuda_product product;
    operands of;
} product_call;

bpt_status bpt_cuda_library_open(bool tf32, bpt_cuda_library **library) {
    BPT_TRY(BPT_NEW("libraries on cores", 1, library));
    (*library)->tf32 = tf32;
    return BPT_OK;
}

void bpt_cuda_library_free(bpt_cuda_library *library) {
    if (library) bpt__choices_clear(&library->choices);
    bpt_free(library);
}

/* ---- choices: there is one way, but it is noted like others ---- */

static bpt__choice_terms terms_of(const bpt_cuda_library *library, const char *gpu) {
    return (bpt__choice_terms){.gpu = gpu, .cudnn = 1, .cublaslt = 1, .tf32 = library->tf32};
}

unsigned bpt_cuda_library_measured(const bpt_cuda_library *library) {
    return library->n_measured;
}

bpt_status bpt_cuda_library_write_choices(const bpt_cuda_library *library, const char *gpu,
                                          char **text) {
    const bpt__choice_terms terms = terms_of(library, gpu);
    return bpt__choices_write(&library->choices, &terms, text);
}

bpt_status bpt_cuda_library_read_choices(bpt_cuda_library *library, const char *gpu,
                                         const bpt_yaml *doc, const bpt_yaml_node *map,
                                         const char **unlike) {
    const bpt__choice_terms terms = terms_of(library, gpu);
    return bpt__choices_read(&library->choices, doc, map, &terms, unlike);
}

/* @param choice with its key and the time that is said to have been measured
 * @param[out] ns what was noted before, if something was */
static bpt_status choose(bpt_cuda_library *library, const bpt__choice *choice, uint64_t *ns) {
    const bpt__choice *known = bpt__choices_find(&library->choices, choice->key);
    *ns = (uint64_t)(known ? known->ns : choice->ns);
    if (known) return BPT_OK;
    library->n_measured++;
    return bpt__choices_note(&library->choices, choice);
}

/* A million products a microsecond. */
static int64_t time_of(int64_t n_products) {
    return 1000 + n_products / 1000;
}

size_t bpt_cuda_library_workspace(const bpt_cuda_library *library) {
    (void)library;
    return 0;
}

void bpt_cuda_library_use(bpt_cuda_library *library, void *workspace) {
    library->workspace = workspace;
}

/* ---- convolutions ---- */

bpt_status bpt_cuda_conv_create(bpt_cuda_library *library, const bpt_cuda_conv_problem *p,
                                bpt_cuda_conv_step step, bpt_cuda_conv **conv) {
    const int64_t row = p->kernel[0] * p->kernel[1] * p->c / p->groups;
    bpt__choice choice = {.ns = time_of(p->n * p->p * p->q * p->k * row)};
    snprintf(choice.key, sizeof choice.key,
             "conv step %d type %d n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64 " k%" PRId64
             " g%" PRId64 " %" PRId64 "x%" PRId64 " s%" PRId64 " p%" PRId64 " d%" PRId64 "%s%s",
             (int)step, (int)p->type, p->n, p->c, p->h, p->w, p->k, p->groups, p->kernel[0],
             p->kernel[1], p->stride[0], p->pad[0], p->dilation[0], p->bias ? " bias" : "",
             p->relu ? " relu" : "");
    BPT_TRY(BPT_NEW("convolution on cores", 1, conv));
    **conv = (struct bpt_cuda_conv){.problem = *p, .step = step};
    const bpt_status status = choose(library, &choice, &(*conv)->ns);
    if (status != BPT_OK) bpt_free(*conv);
    return status;
}

void bpt_cuda_conv_free(bpt_cuda_conv *conv) {
    bpt_free(conv);
}

uint64_t bpt_cuda_conv_ns(const bpt_cuda_conv *conv) {
    return conv->ns;
}

static void run_conv(const void *arg) {
    const conv_call *call = arg;
    const bpt_cuda_conv_problem *p = &call->conv.problem;
    gpu_on_cores_conv(p, call->conv.step, call->of.a, call->of.b, p->bias ? call->of.bias : NULL,
                      call->of.out);
}

bpt_status bpt_cuda_conv_run(bpt_cuda_stream stream, const bpt_cuda_conv *conv, const void *a,
                             const void *b, const float *bias, void *out) {
    const conv_call call = {*conv, {a, b, bias, out}};
    BPT_CUDA_TRY(gpu_on_cores_put(stream, run_conv, &call, sizeof call));
    return BPT_OK;
}

/* ---- products ---- */

bpt_status bpt_cuda_product_create(bpt_cuda_library *library, const bpt_cuda_product_problem *p,
                                   bpt_cuda_conv_step step, bpt_cuda_product **product) {
    bpt__choice choice = {.ns = time_of(p->n * p->c * p->k)};
    snprintf(choice.key, sizeof choice.key,
             "product step %d type %d n%" PRId64 " c%" PRId64 " k%" PRId64 "%s", (int)step,
             (int)p->type, p->n, p->c, p->k, p->bias ? " bias" : "");
    BPT_TRY(BPT_NEW("product on cores", 1, product));
    **product = (struct bpt_cuda_product){.problem = *p, .step = step};
    const bpt_status status = choose(library, &choice, &(*product)->ns);
    if (status != BPT_OK) bpt_free(*product);
    return status;
}

void bpt_cuda_product_free(bpt_cuda_product *product) {
    bpt_free(product);
}

uint64_t bpt_cuda_product_ns(const bpt_cuda_product *product) {
    return product->ns;
}

static void run_product(const void *arg) {
    const product_call *call = arg;
    const bpt_cuda_product_problem *p = &call->product.problem;
    gpu_on_cores_product(p, call->product.step, call->of.a, call->of.b,
                         p->bias ? call->of.bias : NULL, call->of.out);
}

bpt_status bpt_cuda_product_run(bpt_cuda_stream stream, const bpt_cuda_product *product,
                                const void *a, const void *b, const float *bias, void *out) {
    const product_call call = {*product, {a, b, bias, out}};
    BPT_CUDA_TRY(gpu_on_cores_put(stream, run_product, &call, sizeof call));
    return BPT_OK;
}
