/* Steps of convolutions: how they run, and the engines that were found for them so far. */
#include "base/memory.h"
#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_conv_engine.h"
#include "inner/cuda/cuda_values.h"

#include <assert.h>

struct bpt_cuda_conv {
    bpt_cuda_library *library;
    const bpt__conv_engine *engine;
};

/* ---- running ---- */

int64_t bpt__conv_filter_values(const bpt_cuda_conv_problem *p) {
    return p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1];
}

bool bpt__conv_is_converted(const bpt__conv_form *form) {
    return form->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS && form->out_type != BPT_F32;
}

size_t bpt__conv_converted_bytes(const bpt__conv_form *form) {
    if (!bpt__conv_is_converted(form)) return 0;
    return bpt__piece_bytes((size_t)bpt__conv_filter_values(&form->problem) *
                            bpt_value_bytes(form->out_type));
}

static bpt_status run_behind(bpt_cuda_stream stream, const bpt__conv_form *form, const float *bias,
                             void *workspace, void *out) {
    const bpt_cuda_conv_problem *p = &form->problem;
    const int64_t rows = p->n * p->p * p->q;
    if (bpt__conv_is_converted(form))
        return bpt_cuda_convert(stream, workspace, form->out_type, out, BPT_F32,
                                bpt__conv_filter_values(p));
    if (form->step != BPT_CUDA_CONV_FORWARD || form->fused) return BPT_OK;
    if (p->bias) return bpt_cuda_bias(stream, out, bias, p->relu, p->type, rows, p->k);
    if (p->relu) return bpt_cuda_relu(stream, out, p->type, rows * p->k, out);
    return BPT_OK;
}

bpt_status bpt__conv_run_plan(bpt_cuda_stream stream, const bpt__conv_graph *graph,
                              const bpt__conv_plan *plan, const void *a, const void *b,
                              const float *bias, void *out, void *workspace) {
    const bpt__conv_form *form = &graph->form;
    const size_t before = bpt__conv_converted_bytes(form);
    const float *fused_bias = form->fused && form->problem.bias ? bias : NULL;
    BPT_TRY(bpt__plan_run(stream, graph, plan, a, b, fused_bias, before ? workspace : out,
                          workspace ? (char *)workspace + before : NULL));
    return run_behind(stream, form, bias, workspace, out);
}

bpt_status bpt_cuda_conv_run(bpt_cuda_stream stream, const bpt_cuda_conv *conv, const void *a,
                             const void *b, const float *bias, void *out) {
    const bpt__conv_engine *engine = conv->engine;
    const bpt__conv_form *form = &engine->graph.form;
    void *workspace = conv->library->workspace;
    assert(workspace || engine->plan.workspace + bpt__conv_converted_bytes(form) == 0);
    return bpt__conv_run_plan(stream, &engine->graph, &engine->plan, a, b,
                              form->problem.bias ? bias : NULL, out, workspace);
}

/* ---- engines that were chosen ---- */

static bool same_pair(const int64_t a[2], const int64_t b[2]) {
    return a[0] == b[0] && a[1] == b[1];
}

static bool same_problem(const bpt_cuda_conv_problem *a, const bpt_cuda_conv_problem *b) {
    return a->type == b->type && a->n == b->n && a->c == b->c && a->h == b->h && a->w == b->w &&
           a->k == b->k && a->p == b->p && a->q == b->q && a->groups == b->groups &&
           same_pair(a->kernel, b->kernel) && same_pair(a->stride, b->stride) &&
           same_pair(a->pad, b->pad) && same_pair(a->dilation, b->dilation) && a->bias == b->bias &&
           a->relu == b->relu;
}

static bpt__conv_engine *find_engine(const bpt_cuda_library *library,
                                     const bpt_cuda_conv_problem *problem,
                                     bpt_cuda_conv_step step) {
    bpt__conv_engine *engine = library->engines;
    while (engine &&
           !(engine->graph.form.step == step && same_problem(&engine->graph.form.problem, problem)))
        engine = engine->next;
    return engine;
}

static void engine_free(bpt_cuda_library *library, bpt__conv_engine *engine) {
    bpt__plan_free(library, &engine->plan);
    bpt__graph_free(&engine->graph);
    bpt_free(engine);
}

void bpt__conv_engines_free(bpt_cuda_library *library) {
    while (library->engines) {
        bpt__conv_engine *engine = library->engines;
        library->engines = engine->next;
        engine_free(library, engine);
    }
}

static bpt_status add_engine(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                             bpt_cuda_conv_step step) {
    bpt__conv_engine *engine = NULL;
    BPT_TRY(BPT_NEW("convolution's engine", 1, &engine));
    const bpt_status status = bpt__conv_search(library, problem, step, engine);
    if (status != BPT_OK) {
        engine_free(library, engine);
        return status;
    }
    engine->next = library->engines;
    library->engines = engine;
    return BPT_OK;
}

bpt_status bpt_cuda_conv_create(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                                bpt_cuda_conv_step step, bpt_cuda_conv **conv) {
    bpt_cuda_conv_problem key = *problem;
    if (step != BPT_CUDA_CONV_FORWARD) key.bias = key.relu = false; /* they make no difference */
    if (!find_engine(library, &key, step)) BPT_TRY(add_engine(library, &key, step));
    const bpt__conv_engine *engine = find_engine(library, &key, step);
    BPT_TRY(BPT_NEW("convolution", 1, conv));
    **conv = (bpt_cuda_conv){.library = library, .engine = engine};
    bpt__library_want(library,
                      engine->plan.workspace + bpt__conv_converted_bytes(&engine->graph.form));
    return BPT_OK;
}

void bpt_cuda_conv_free(bpt_cuda_conv *conv) {
    bpt_free(conv);
}

uint64_t bpt_cuda_conv_ns(const bpt_cuda_conv *conv) {
    return conv->engine->ns;
}
