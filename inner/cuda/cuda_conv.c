/* A step of a convolution can be had in up to two ways: forward with bias and ReLU in one engine or
 * behind it, the weights' gradient as floats or converted to floats behind the engine. The plans of
 * both are measured, with what comes behind them, and the fastest stays. */
#include "base/log.h"
#include "base/memory.h"
#include "inner/cuda/cuda_bias.h"
#include "inner/cuda/cuda_graph.h"
#include "inner/cuda/cuda_values.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FORMS = 2 };

struct bpt__conv_engine {
    bpt__conv_graph graph;
    bpt__conv_plan plan;
    size_t way, place; /* among the forms, and the plans of this one */
    uint64_t ns;
    bpt__conv_engine *next;
};

struct bpt_cuda_conv {
    bpt_cuda_library *library;
    const bpt__conv_engine *engine;
};

static const char *const step_texts[] = {
    [BPT_CUDA_CONV_FORWARD] = "forward pass",
    [BPT_CUDA_CONV_BACKWARD_DATA] = "input's gradient",
    [BPT_CUDA_CONV_BACKWARD_WEIGHTS] = "weights' gradient",
};

/* ---- running ---- */

static int64_t n_filter_values(const bpt_cuda_conv_problem *p) {
    return p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1];
}

static bool is_converted(const bpt__conv_form *form) {
    return form->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS && form->out_type != BPT_F32;
}

/* Bytes at the workspace's start for a gradient that is yet to be converted. */
static size_t converted_bytes(const bpt__conv_form *form) {
    size_t used = 0;
    if (is_converted(form))
        bpt__piece(NULL, (size_t)n_filter_values(&form->problem) * bpt_value_bytes(form->out_type),
                   &used);
    return used;
}

static bpt_status run_behind(bpt_cuda_stream stream, const bpt__conv_form *form, const float *bias,
                             void *workspace, void *out) {
    const bpt_cuda_conv_problem *p = &form->problem;
    const int64_t rows = p->n * p->p * p->q;
    if (is_converted(form))
        return bpt_cuda_convert(stream, workspace, form->out_type, out, BPT_F32,
                                n_filter_values(p));
    if (form->step != BPT_CUDA_CONV_FORWARD || form->fused) return BPT_OK;
    if (p->bias) return bpt_cuda_bias(stream, out, bias, p->relu, p->type, rows, p->k);
    if (p->relu) return bpt_cuda_relu(stream, out, p->type, rows * p->k, out);
    return BPT_OK;
}

static bpt_status run(bpt_cuda_stream stream, const bpt__conv_graph *graph,
                      const bpt__conv_plan *plan, const void *a, const void *b, const float *bias,
                      void *out, void *workspace) {
    const bpt__conv_form *form = &graph->form;
    const size_t before = converted_bytes(form);
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
    assert(workspace || engine->plan.workspace + converted_bytes(form) == 0);
    return run(stream, &engine->graph, &engine->plan, a, b, form->problem.bias ? bias : NULL, out,
               workspace);
}

/* ---- measurement ---- */

typedef size_t (*plans_fn)(bpt__conv_graph *graph, bpt__conv_plan *plans);

/* What is measured: the graphs, their plans, and memory for the largest of them. */
typedef struct search {
    bpt_cuda_library *library;
    plans_fn find_plans;
    bpt__conv_graph graphs[MAX_FORMS];
    bpt__conv_plan plans[MAX_FORMS][BPT__MAX_PLANS];
    size_t n_graphs, n_plans[MAX_FORMS];
    size_t workspace_bytes;
    void *block, *a, *b, *bias, *out, *workspace, *delay;
    const bpt__conv_graph *graph; /* that is being measured, with */
    const bpt__conv_plan *plan;
    size_t best_graph, best_plan;
    uint64_t best_ns;         /* UINT64_MAX: none has run */
    const bpt__choice *known; /* NULL: nothing is */
} search;

/* A form that cuDNN cannot build has no plans. */
static void add_form(search *s, bpt__conv_form form) {
    const size_t i = s->n_graphs++;
    if (s->known && (size_t)s->known->way != i) return;
    if (!bpt__graph_build(s->library, &form, &s->graphs[i])) return;
    s->graphs[i].patient = s->known != NULL;
    s->n_plans[i] = s->find_plans(&s->graphs[i], s->plans[i]);
    for (size_t j = 0; j < s->n_plans[i]; j++) {
        const size_t bytes = converted_bytes(&form) + s->plans[i][j].workspace;
        if (bytes > s->workspace_bytes) s->workspace_bytes = bytes;
    }
}

static void add_forms(search *s, const bpt_cuda_conv_problem *problem, bpt_cuda_conv_step step) {
    const bool weights = step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    bpt__conv_form form = {
        .problem = *problem, .step = step, .out_type = weights ? BPT_F32 : problem->type};
    add_form(s, form);
    if (weights && problem->type != BPT_F32) {
        form.out_type = problem->type;
        add_form(s, form);
    }
    if (step == BPT_CUDA_CONV_FORWARD && (problem->bias || problem->relu)) {
        form.fused = true;
        add_form(s, form);
    }
}

/* @param block NULL: only counts. @return bytes of all pieces */
static size_t place_pieces(search *s, void *block) {
    const bpt__conv_form *form = &s->graphs[0].form;
    const bpt_cuda_conv_problem *p = &form->problem;
    const size_t bytes = bpt_value_bytes(p->type);
    const size_t input = (size_t)(p->n * p->h * p->w * p->c) * bytes;
    const size_t output = (size_t)(p->n * p->p * p->q * p->k) * bytes;
    const size_t filters = (size_t)n_filter_values(p) * bytes;
    const bool backward_data = form->step == BPT_CUDA_CONV_BACKWARD_DATA;
    const bool weights = form->step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    size_t used = 0;
    s->a = bpt__piece(block, backward_data ? output : input, &used);
    s->b = bpt__piece(block, weights ? output : filters, &used);
    s->bias = bpt__piece(block, (size_t)p->k * sizeof(float), &used);
    s->out = bpt__piece(block,
                        weights         ? (size_t)n_filter_values(p) * sizeof(float)
                        : backward_data ? input
                                        : output,
                        &used);
    s->workspace = bpt__piece(block, s->workspace_bytes, &used);
    s->delay = bpt__piece(block, BPT__DELAY_BYTES, &used);
    return used;
}

static bpt_status allocate(search *s) {
    const size_t bytes = place_pieces(s, NULL);
    BPT_TRY(bpt_cuda_allocate(bytes, &s->block));
    place_pieces(s, s->block);
    return bpt_cuda_set(s->library->stream, s->block, 0, bytes);
}

static bpt_status run_measured(bpt_cuda_stream stream, void *arg) {
    const search *s = arg;
    return run(stream, s->graph, s->plan, s->a, s->b, s->bias, s->out, s->workspace);
}

/* A plan that does not run is passed over. */
static void measure(search *s, size_t graph, size_t plan) {
    uint64_t ns = 0;
    s->graph = &s->graphs[graph];
    s->plan = &s->plans[graph][plan];
    if (bpt__measure(s->library, run_measured, s, s->delay, &ns) != BPT_OK || ns >= s->best_ns)
        return;
    s->best_ns = ns;
    s->best_graph = graph;
    s->best_plan = plan;
}

/* Leaves out the plans that want more room than others. */
static void drop_plans(search *s, size_t most) {
    s->workspace_bytes = 0;
    for (size_t i = 0; i < s->n_graphs; i++) {
        size_t kept = 0;
        for (size_t j = 0; j < s->n_plans[i]; j++) {
            const size_t bytes = converted_bytes(&s->graphs[i].form) + s->plans[i][j].workspace;
            if (bytes > most) {
                bpt__plan_free(s->library, &s->plans[i][j]);
                continue;
            }
            if (bytes > s->workspace_bytes) s->workspace_bytes = bytes;
            s->plans[i][kept++] = s->plans[i][j];
        }
        s->n_plans[i] = kept;
    }
}

/* Where the GPU is nearly full the plans that need little room are still measured. */
static bpt_status allocate_some(search *s) {
    bpt_status status = allocate(s);
    while (status == BPT_ENOMEM && s->workspace_bytes > 0) {
        drop_plans(s, s->workspace_bytes / 4);
        status = allocate(s);
    }
    return status;
}

static bpt_status measure_all(search *s) {
    BPT_TRY(allocate_some(s));
    for (size_t i = 0; i < s->n_graphs; i++)
        for (size_t j = 0; j < s->n_plans[i]; j++) measure(s, i, j);
    return BPT_OK;
}

static void end_search(search *s) {
    for (size_t i = 0; i < s->n_graphs; i++) {
        for (size_t j = 0; j < s->n_plans[i]; j++) bpt__plan_free(s->library, &s->plans[i][j]);
        bpt__graph_free(&s->graphs[i]);
    }
    if (s->block) bpt_cuda_free(s->block);
}

/* Without a measurement. Nothing is found where there is no such plan here. */
static void find_known(search *s) {
    const size_t way = (size_t)s->known->way, place = (size_t)s->known->place;
    if (way >= s->n_graphs || place >= s->n_plans[way]) return;
    s->best_graph = way;
    s->best_plan = place;
    s->best_ns = (uint64_t)s->known->ns;
}

static void name_problem(const bpt_cuda_conv_problem *p, bpt_cuda_conv_step step,
                         char key[BPT__CHOICE_KEY_SIZE]) {
    snprintf(key, BPT__CHOICE_KEY_SIZE,
             "conv step %d type %d n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64 " k%" PRId64
             " p%" PRId64 " q%" PRId64 " g%" PRId64 " %" PRId64 "x%" PRId64 " s%" PRId64 "x%" PRId64
             " p%" PRId64 "x%" PRId64 " d%" PRId64 "x%" PRId64 "%s%s",
             (int)step, (int)p->type, p->n, p->c, p->h, p->w, p->k, p->p, p->q, p->groups,
             p->kernel[0], p->kernel[1], p->stride[0], p->stride[1], p->pad[0], p->pad[1],
             p->dilation[0], p->dilation[1], p->bias ? " bias" : "", p->relu ? " relu" : "");
}

/* Takes the fastest out of the search. */
static void take_best(search *s, bpt__conv_engine *engine) {
    engine->graph = s->graphs[s->best_graph];
    engine->plan = s->plans[s->best_graph][s->best_plan];
    engine->way = s->best_graph;
    engine->place = s->best_plan;
    engine->ns = s->best_ns;
    s->plans[s->best_graph][s->best_plan] = (bpt__conv_plan){0};
    s->graphs[s->best_graph].n_parts = 0;
    const bpt_cuda_conv_problem *p = &engine->graph.form.problem;
    bpt_debug("cuDNN: %s of %" PRId64 "x%" PRId64 ", %" PRId64 " to %" PRId64
              " channels: way %zu, plan %zu of %zu, %.1f us",
              step_texts[engine->graph.form.step], p->kernel[0], p->kernel[1], p->c, p->k,
              s->best_graph, s->best_plan, s->n_plans[s->best_graph], (double)s->best_ns * 1e-3);
}

/* @param[in,out] engine is left as it is where no engine can do it */
static bpt_status search_plans(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                               bpt_cuda_conv_step step, plans_fn find_plans,
                               const bpt__choice *known, bpt__conv_engine *engine) {
    search s = {
        .library = library, .find_plans = find_plans, .best_ns = UINT64_MAX, .known = known};
    bpt_status status = BPT_OK;
    add_forms(&s, problem, step);
    if (known)
        find_known(&s);
    else
        status = measure_all(&s);
    if (s.best_ns != UINT64_MAX) take_best(&s, engine);
    end_search(&s);
    return status;
}

static bpt_status no_engine(const bpt_cuda_library *library, const bpt_cuda_conv_problem *p,
                            bpt_cuda_conv_step step) {
    const char *floats = library->tf32 ? "tf32" : "fp32";
    return bpt_fail(BPT_EBACKEND,
                    "cuDNN has no engine for the %s of a convolution of %" PRId64 "x%" PRId64
                    " with %" PRId64 " channels to %" PRId64 " in %" PRId64 " groups (%s): %s",
                    step_texts[step], p->kernel[0], p->kernel[1], p->c, p->k, p->groups,
                    p->type == BPT_BF16 ? "bf16" : floats, library->refusal);
}

/* How plans are found is a part of the way in which a step is done. */
static const plans_fn plans_of[] = {bpt__graph_plans, bpt__graph_all_plans};

static bpt_status use_known(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                            bpt_cuda_conv_step step, const char *key, bpt__conv_engine *engine) {
    const bpt__choice *known = bpt__choices_find(&library->choices, key);
    if (!known || known->way >= MAX_FORMS * 2) return BPT_OK;
    bpt__choice choice = *known;
    choice.way %= MAX_FORMS;
    return search_plans(library, problem, step, plans_of[known->way / MAX_FORMS], &choice, engine);
}

/* Where heuristics name no engine that may be used, all are tried. */
static bpt_status measure_engines(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                                  bpt_cuda_conv_step step, const char *key,
                                  bpt__conv_engine *engine) {
    for (int i = 0; i < 2 && !engine->plan.plan; i++) {
        BPT_TRY(search_plans(library, problem, step, plans_of[i], NULL, engine));
        engine->way += (size_t)i * MAX_FORMS;
    }
    if (!engine->plan.plan) return no_engine(library, problem, step);
    bpt__choice c = {
        .way = (int64_t)engine->way, .place = (int64_t)engine->place, .ns = (int64_t)engine->ns};
    strcpy(c.key, key);
    return bpt__choices_note(&library->choices, &c);
}

static bpt_status search_engine(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                                bpt_cuda_conv_step step, bpt__conv_engine *engine) {
    char key[BPT__CHOICE_KEY_SIZE];
    name_problem(problem, step, key);
    library->refusal[0] = '\0';
    BPT_TRY(use_known(library, problem, step, key, engine));
    if (engine->plan.plan) return BPT_OK;
    return measure_engines(library, problem, step, key, engine);
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
    const bpt_status status = search_engine(library, problem, step, engine);
    if (status != BPT_OK) {
        bpt_free(engine);
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
    bpt__library_want(library, engine->plan.workspace + converted_bytes(&engine->graph.form));
    return BPT_OK;
}

void bpt_cuda_conv_free(bpt_cuda_conv *conv) {
    bpt_free(conv);
}

uint64_t bpt_cuda_conv_ns(const bpt_cuda_conv *conv) {
    return conv->engine->ns;
}
