#include "tests/bench/policy_graphs.h"

#include "base/memory.h"
#include "base/random.h"
#include "inner/network/network_private.h"

#include <math.h>
#include <string.h>

enum { MAX_TASKS = 4000, MAX_EDGES = 16000, N_STEPS = 5 };

static uint64_t draw_cost(bpt_random *r) {
    return (uint64_t)(1e4 * pow(100.0, (double)bpt_random_uniform(r)));
}

static uint32_t draw(bpt_random *r, uint32_t min, uint32_t max) {
    return min + bpt_random_below(r, max - min + 1);
}

/* The graphs stay far below their room, so adding cannot fail. */
static uint32_t add(bpt_graph *g, bpt_random *r, const uint32_t *after, size_t n_after) {
    uint32_t id = 0;
    (void)bpt_graph_add(g, NULL, NULL, (bpt_task_info){.kind = "random"}, draw_cost(r), after,
                        n_after, &id);
    return id;
}

static void make_layered(bpt_graph *g, bpt_random *r) {
    uint32_t before = 0, n_before = draw(r, 1, 100);
    for (uint32_t i = 0; i < n_before; i++) add(g, r, NULL, 0);
    const uint32_t n_layers = draw(r, 5, 20);
    for (uint32_t layer = 1; layer < n_layers; layer++) {
        const uint32_t n = draw(r, 1, 100);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t after[3];
            const uint32_t n_after = draw(r, 1, 3);
            for (uint32_t k = 0; k < n_after; k++)
                after[k] = before + bpt_random_below(r, n_before);
            add(g, r, after, n_after);
        }
        before += n_before;
        n_before = n;
    }
}

static void make_branches(bpt_graph *g, bpt_random *r) {
    uint32_t fork = add(g, r, NULL, 0);
    const uint32_t n_forks = draw(r, 1, 6);
    for (uint32_t f = 0; f < n_forks; f++) {
        uint32_t ends[40];
        const uint32_t n_chains = draw(r, 2, 40);
        for (uint32_t c = 0; c < n_chains; c++) {
            ends[c] = fork;
            for (uint32_t n = draw(r, 1, 8); n > 0; n--) ends[c] = add(g, r, &ends[c], 1);
        }
        fork = add(g, r, ends, n_chains);
    }
}

static void make_sparse(bpt_graph *g, bpt_random *r) {
    for (uint32_t i = 0; i < 600; i++) {
        uint32_t after[3];
        const uint32_t n_after = i ? draw(r, 0, 3) : 0;
        for (uint32_t k = 0; k < n_after; k++)
            after[k] = i - 1 - bpt_random_below(r, i < 40 ? i : 40);
        add(g, r, after, n_after);
    }
}

bpt_status random_graph(random_kind kind, uint64_t seed, bpt_graph **g) {
    static void (*const make[])(bpt_graph *, bpt_random *) = {
        [RANDOM_LAYERED] = make_layered,
        [RANDOM_BRANCHES] = make_branches,
        [RANDOM_SPARSE] = make_sparse,
    };
    bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, kind);
    BPT_TRY(bpt_graph_create(MAX_TASKS, MAX_EDGES, g));
    make[kind](*g, &r);
    return BPT_OK;
}

/* ---- steps ---- */

#define BRANCHES(n, from)                                                                          \
    "  - conv: {name: a" n ", input: " from                                                        \
    ", filters: 64, kernel: 1}\n"                                                                  \
    "  - conv: {name: b" n ", input: " from                                                        \
    ", filters: 32, kernel: 1}\n"                                                                  \
    "  - conv: {name: bb" n                                                                        \
    ", filters: 64, kernel: 3, pad: 1}\n"                                                          \
    "  - conv: {name: c" n ", input: " from                                                        \
    ", filters: 16, kernel: 1}\n"                                                                  \
    "  - conv: {name: cc" n                                                                        \
    ", filters: 32, kernel: 3, pad: 1}\n"                                                          \
    "  - conv: {name: ccc" n                                                                       \
    ", filters: 64, kernel: 3, pad: 1}\n"                                                          \
    "  - maxpool: {name: p" n ", input: " from                                                     \
    ", kernel: 3, stride: 1, pad: 1}\n"                                                            \
    "  - conv: {name: pp" n                                                                        \
    ", filters: 64, kernel: 1}\n"                                                                  \
    "  - add: {name: join" n ", input: [a" n ", bb" n ", ccc" n ", pp" n "]}\n"

static const char branches[] = "name: branches\n"
                               "input: [3, 32, 32]\n"
                               "classes: 10\n"
                               "layers:\n"
                               "  - conv: {name: stem, filters: 64, kernel: 3, pad: 1}\n"
                               "  - relu: {name: stem_relu}\n" BRANCHES("1", "stem_relu")
                                   BRANCHES("2", "join1") "  - global_avgpool\n"
                                                          "  - fc: {name: out, outputs: classes}\n";

static bpt_status load(const char *name, bpt_model **model) {
    if (strcmp(name, "branches") != 0) return bpt_model_load(name, NULL, model);
    return bpt_model_parse(name, branches, strlen(branches), NULL, model);
}

static bpt_status fill(step_graph *s, int64_t batch) {
    const bpt_shape in = s->model->input;
    const size_t n = (size_t)batch, sample = (size_t)(in.c * in.h * in.w);
    BPT_TRY(BPT_NEW("pixels", n * sample, &s->pixels));
    BPT_TRY(BPT_NEW("labels", n, &s->labels));
    BPT_TRY(BPT_NEW("weights", s->model->segments.n_elements, &s->weights));
    bpt_random r = bpt_random_stream(1, BPT_PURPOSE_SYNTHETIC, 0);
    for (size_t i = 0; i < n * sample; i++) s->pixels[i] = bpt_random_normal(&r);
    for (size_t i = 0; i < n; i++)
        s->labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)s->model->classes);
    bpt_segments_initialise(&s->model->segments, 1, s->weights);
    return bpt_network_set(s->network, BPT_VECTOR_WEIGHTS, s->weights);
}

/* The least time, since others use the machine too. */
static bpt_status measure(step_graph *s) {
    uint64_t *least;
    bpt_status status = BPT_OK;
    s->graph = s->network->graphs[BPT_GRAPH_TRAIN];
    const size_t n = bpt_graph_n_tasks(s->graph);
    BPT_TRY(BPT_NEW("times", n, &least));
    for (int step = 0; step < N_STEPS && status == BPT_OK; step++) {
        status = step_graph_run(s);
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t ns = bpt_graph_measured(s->graph, i);
            if (step == 0 || ns < least[i]) least[i] = ns;
        }
    }
    for (uint32_t i = 0; i < n; i++) bpt_graph_set_cost(s->graph, i, least[i]);
    bpt_free(least);
    return status;
}

bpt_status step_graph_open(const char *name, int64_t batch, unsigned n_workers, bpt_pool *pool,
                           step_graph *s) {
    *s = (step_graph){.batch = batch, .costs = {.workers = n_workers}};
    BPT_TRY(load(name, &s->model));
    bpt_model_use_costs(s->model, &s->costs);
    BPT_TRY(bpt_network_create(s->model, batch, BPT_F32, (bpt_learning){.momentum = 0.9f}, pool,
                               &s->network));
    BPT_TRY(fill(s, batch));
    return measure(s);
}

bpt_status step_graph_run(step_graph *s) {
    bpt_batch_result result;
    return bpt_network_train(s->network, s->pixels, s->labels, 1e-4f, (float)s->batch, &result);
}

void step_graph_close(step_graph *s) {
    bpt_network_free(s->network);
    bpt_model_free(s->model);
    bpt_free(s->pixels);
    bpt_free(s->labels);
    bpt_free(s->weights);
}
