/* The plans of both ways of a step are measured, with what comes behind them, and the fastest
 * stays. */
#include "base/log.h"
#include "inner/cuda/cuda_conv_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FORMS = 2 };

static const char *const list_texts[] = {
    [BPT__ENGINES_LIKELY] = "",
    [BPT__ENGINES_FALLBACK] = " (fallback)",
    [BPT__ENGINES_ALL] = " (of all)",
};

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
    bpt__operands operands;
    const bpt__conv_graph *graph; /* that is being measured, with */
    const bpt__conv_plan *plan;
    size_t best_graph, best_plan;
    uint64_t best_ns; /* UINT64_MAX: none has run */
} search;

/* The ways in which a step can be done. @return how many there are */
static size_t list_forms(const bpt_cuda_conv_problem *problem, bpt_cuda_conv_step step,
                         bpt__conv_form forms[MAX_FORMS]) {
    const bool weights = step == BPT_CUDA_CONV_BACKWARD_WEIGHTS;
    const bpt__conv_form first = {
        .problem = *problem, .step = step, .out_type = weights ? BPT_F32 : problem->type};
    forms[0] = forms[1] = first;
    if (weights && problem->type != BPT_F32) {
        forms[1].out_type = problem->type;
        return 2;
    }
    if (step == BPT_CUDA_CONV_FORWARD && (problem->bias || problem->relu)) {
        forms[1].fused = true;
        return 2;
    }
    return 1;
}

/* A form that cuDNN cannot build has no plans. */
static void add_form(search *s, const bpt__conv_form *form) {
    const size_t i = s->n_graphs++;
    if (!bpt__graph_build(s->library, form, &s->graphs[i])) return;
    s->n_plans[i] = s->find_plans(&s->graphs[i], s->plans[i]);
    for (size_t j = 0; j < s->n_plans[i]; j++) {
        const size_t bytes = bpt__conv_converted_bytes(form) + s->plans[i][j].workspace;
        if (bytes > s->workspace_bytes) s->workspace_bytes = bytes;
    }
}

static void add_forms(search *s, const bpt_cuda_conv_problem *problem, bpt_cuda_conv_step step) {
    bpt__conv_form forms[MAX_FORMS];
    const size_t n = list_forms(problem, step, forms);
    for (size_t i = 0; i < n; i++) add_form(s, &forms[i]);
}

static bpt_status allocate(search *s) {
    const bpt__conv_form *form = &s->graphs[0].form;
    const bpt_cuda_conv_problem *p = &form->problem;
    const size_t bytes = bpt_value_bytes(p->type), filters = (size_t)bpt__conv_filter_values(p);
    const bpt__operand_bytes sizes = {
        .x = (size_t)(p->n * p->h * p->w * p->c) * bytes,
        .y = (size_t)(p->n * p->p * p->q * p->k) * bytes,
        .weights = filters * bytes,
        .float_weights = filters * sizeof(float),
        .bias = (size_t)p->k * sizeof(float),
        .workspace = s->workspace_bytes,
    };
    return bpt__operands_allocate(s->library, form->step, &sizes, &s->operands);
}

static bpt_status run_measured(bpt_cuda_stream stream, void *arg) {
    const search *s = arg;
    const bpt__operands *o = &s->operands;
    return bpt__conv_run_plan(stream, s->graph, s->plan, o->a, o->b, o->bias, o->out, o->workspace);
}

/* A plan that does not run is passed over. */
static bpt_status measure(search *s, size_t graph, size_t plan) {
    char what[128];
    uint64_t ns;
    s->graph = &s->graphs[graph];
    s->plan = &s->plans[graph][plan];
    snprintf(what, sizeof what, "engine %" PRId64 "%s of cuDNN for the %s of a convolution",
             s->plan->place, list_texts[s->plan->list], bpt__step_text(s->graph->form.step));
    BPT_TRY(bpt__measure(s->library, run_measured, s, s->operands.delay, what, &ns));
    if (ns >= s->best_ns) return BPT_OK;
    s->best_ns = ns;
    s->best_graph = graph;
    s->best_plan = plan;
    return BPT_OK;
}

/* Leaves out the plans that want more room than others. */
static void drop_plans(search *s, size_t most) {
    s->workspace_bytes = 0;
    for (size_t i = 0; i < s->n_graphs; i++) {
        size_t kept = 0;
        for (size_t j = 0; j < s->n_plans[i]; j++) {
            const size_t bytes =
                bpt__conv_converted_bytes(&s->graphs[i].form) + s->plans[i][j].workspace;
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

static size_t count_plans(const search *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_graphs; i++) n += s->n_plans[i];
    return n;
}

/* Where the GPU is nearly full the plans that need little room are still measured. */
static bpt_status allocate_some(search *s) {
    bpt_status status = allocate(s);
    while (status == BPT_EFULL && s->workspace_bytes > 0) {
        drop_plans(s, s->workspace_bytes / 4);
        if (count_plans(s) == 0) break;
        status = allocate(s);
    }
    return status;
}

static bpt_status measure_all(search *s) {
    BPT_TRY(allocate_some(s));
    for (size_t i = 0; i < s->n_graphs; i++)
        for (size_t j = 0; j < s->n_plans[i]; j++) BPT_TRY(measure(s, i, j));
    return BPT_OK;
}

static void end_search(search *s) {
    for (size_t i = 0; i < s->n_graphs; i++) {
        for (size_t j = 0; j < s->n_plans[i]; j++) bpt__plan_free(s->library, &s->plans[i][j]);
        bpt__graph_free(&s->graphs[i]);
    }
    if (s->operands.block) bpt_cuda_free(s->operands.block);
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
    engine->ns = s->best_ns;
    s->plans[s->best_graph][s->best_plan] = (bpt__conv_plan){0};
    s->graphs[s->best_graph].n_parts = 0;
}

/* @param[in,out] engine is left as it is where no engine can do it */
static bpt_status search_plans(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                               bpt_cuda_conv_step step, plans_fn find_plans,
                               bpt__conv_engine *engine) {
    search s = {.library = library, .find_plans = find_plans, .best_ns = UINT64_MAX};
    add_forms(&s, problem, step);
    const bpt_status status = measure_all(&s);
    if (status == BPT_OK && s.best_ns != UINT64_MAX) take_best(&s, engine);
    end_search(&s);
    return status;
}

static bpt_status no_engine(const bpt_cuda_library *library, const bpt_cuda_conv_problem *p,
                            bpt_cuda_conv_step step) {
    const char *floats = library->tf32 ? "tf32" : "fp32";
    return bpt_fail(BPT_EBACKEND,
                    "cuDNN has no engine for the %s of a convolution of %" PRId64 "x%" PRId64
                    " with %" PRId64 " channels to %" PRId64 " in %" PRId64 " groups (%s): %s",
                    bpt__step_text(step), p->kernel[0], p->kernel[1], p->c, p->k, p->groups,
                    p->type == BPT_BF16 ? "bf16" : floats, library->refusal);
}

/* Which of the two forms an engine has. */
static int64_t way_of(const bpt__conv_form *form) {
    return form->fused || bpt__conv_is_converted(form);
}

/* Leaves the engine as it is where nothing is known, or there is no such engine here. */
static void use_known(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                      bpt_cuda_conv_step step, const char *key, bpt__conv_engine *engine) {
    const bpt__choice *known = bpt__choices_find(&library->choices, key);
    bpt__conv_form forms[MAX_FORMS];
    bpt__conv_graph graph = {0};
    if (!known || known->way >= (int64_t)list_forms(problem, step, forms)) return;
    if (bpt__graph_build(library, &forms[known->way], &graph) &&
        bpt__graph_plan(&graph, (bpt__engine_list)known->list, known->place, &engine->plan)) {
        engine->graph = graph;
        engine->ns = (uint64_t)known->ns;
    } else {
        engine->plan = (bpt__conv_plan){0};
        bpt__graph_free(&graph);
    }
}

static bpt_status note_choice(bpt_cuda_library *library, const char *key,
                              const bpt__conv_engine *engine) {
    bpt__choice c = {.way = way_of(&engine->graph.form),
                     .list = engine->plan.list,
                     .place = engine->plan.place,
                     .ns = (int64_t)engine->ns};
    strcpy(c.key, key);
    BPT_TRY(bpt__choices_note(&library->choices, &c));
    library->n_measured++;
    return BPT_OK;
}

/* Where heuristics name no engine that may be used, all are tried. */
static bpt_status measure_engines(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                                  bpt_cuda_conv_step step, bpt__conv_engine *engine) {
    BPT_TRY(search_plans(library, problem, step, bpt__graph_plans, engine));
    if (engine->plan.plan) return BPT_OK;
    BPT_TRY(search_plans(library, problem, step, bpt__graph_all_plans, engine));
    return engine->plan.plan ? BPT_OK : no_engine(library, problem, step);
}

static void say_choice(const bpt__conv_engine *engine) {
    const bpt_cuda_conv_problem *p = &engine->graph.form.problem;
    bpt_debug("cuDNN: %s of %" PRId64 "x%" PRId64 ", %" PRId64 " to %" PRId64
              " channels: way %" PRId64 ", list %d, place %" PRId64 ", %.1f us",
              bpt__step_text(engine->graph.form.step), p->kernel[0], p->kernel[1], p->c, p->k,
              way_of(&engine->graph.form), (int)engine->plan.list, engine->plan.place,
              (double)engine->ns * 1e-3);
}

bpt_status bpt__conv_search(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                            bpt_cuda_conv_step step, bpt__conv_engine *engine) {
    char key[BPT__CHOICE_KEY_SIZE];
    name_problem(problem, step, key);
    library->refusal[0] = '\0';
    use_known(library, problem, step, key, engine);
    if (!engine->plan.plan) {
        BPT_TRY(measure_engines(library, problem, step, engine));
        BPT_TRY(note_choice(library, key, engine));
    }
    say_choice(engine);
    return BPT_OK;
}
