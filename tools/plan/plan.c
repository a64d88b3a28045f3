#include "tools/plan/plan.h"

#include "base/memory.h"
#include "tools/train/job/batch_cut.h"
#include "tools/train/job/update_choice.h"

#include <inttypes.h>

static const bpt_way ways[BPT_PLAN_WAYS] = {
    {BPT_UPDATE_LOCAL, BPT_PARTITION_EVEN},     {BPT_UPDATE_AGWU, BPT_PARTITION_IDPA},
    {BPT_UPDATE_SGWU, BPT_PARTITION_IDPA},      {BPT_UPDATE_ALLREDUCE, BPT_PARTITION_EVEN},
    {BPT_UPDATE_ALLREDUCE, BPT_PARTITION_IDPA},
};

const bpt_way *bpt_plan_ways(void) {
    return ways;
}

const char *bpt_way_name(bpt_way way) {
    if (way.update != BPT_UPDATE_ALLREDUCE) return bpt_update_choice_name(way.update);
    return way.partition == BPT_PARTITION_EVEN ? "allreduce, even" : "allreduce, idpa";
}

const bpt_plan_size *bpt_plan_whole(const bpt_plan *plan) {
    return &plan->sizes[plan->n_sizes - 1];
}

static bool is_way(bpt_way a, bpt_way b) {
    return a.update == b.update && a.partition == b.partition;
}

const bpt_plan_row *bpt_plan_find(const bpt_plan_size *size, bpt_way way) {
    for (size_t i = 0; i < size->n_rows; i++)
        if (is_way(size->rows[i].way, way)) return &size->rows[i];
    return NULL;
}

/* What a rank of so many threads takes for so many samples, of the way that is looked at. */
typedef struct known_memory {
    uint32_t threads, part;
    size_t bytes;
} known_memory;

/* What plans are made with. */
typedef struct maker {
    const bpt_recipe *recipe;
    const bpt_node **nodes;
    double latency_s;
    bpt_plan_scratch scratch;
    known_memory *known; /* shape [n_known], has room for one a rank */
    size_t n_known;
} maker;

/* ---- memory ---- */

/* Cuts a batch of allreduce by speed; scratch->cut has it. */
static void cut_by_speed(const bpt_work *work, const bpt_team *team, bpt_plan_scratch *scratch) {
    for (uint32_t r = 0; r < team->n; r++)
        scratch->speed[r] = bpt_node_alone(team->nodes[r], work->batch / (double)team->n);
    bpt_batch_cut(scratch->speed, team->n, work->batch, scratch->cut);
}

/* Samples of a step that a rank has, at most: under allreduce all alike, or by its speed. */
static uint32_t largest_part(const bpt_work *work, const bpt_team *team, bpt_way way, uint32_t rank,
                             const uint64_t *cut) {
    if (way.update != BPT_UPDATE_ALLREDUCE) return work->batch;
    if (way.partition == BPT_PARTITION_EVEN) return (work->batch + team->n - 1) / team->n;
    return (uint32_t)(cut[rank + 1] - cut[rank]);
}

/* Planning a large network takes a while, and many ranks take as much as others. */
static bpt_status memory_of(maker *m, bpt_way way, uint32_t n_ranks, const bpt_node *node,
                            uint32_t part, size_t *bytes) {
    for (size_t i = 0; i < m->n_known; i++) {
        const known_memory *k = &m->known[i];
        *bytes = k->bytes;
        if (k->threads == node->threads && k->part == part) return BPT_OK;
    }
    BPT_TRY(bpt_recipe_memory(m->recipe, way, n_ranks, node, part, bytes));
    m->known[m->n_known++] = (known_memory){node->threads, part, *bytes};
    return BPT_OK;
}

/* Ranks of one node are alike, but for a sample. */
static bpt_status plan_memory(maker *m, const bpt_team *team, const bpt_work *work,
                              bpt_plan_row *row) {
    m->n_known = 0;
    if (row->way.update == BPT_UPDATE_ALLREDUCE) cut_by_speed(work, team, &m->scratch);
    for (uint32_t r = 0; r < team->n; r++) {
        const bpt_node *node = team->nodes[r];
        size_t bytes;
        if (r > 0 && team->nodes[r - 1] == node) continue;
        const uint32_t part = largest_part(work, team, row->way, r, m->scratch.cut);
        BPT_TRY(memory_of(m, row->way, team->n, node, part, &bytes));
        if ((double)bytes > row->most_memory) row->most_memory = (double)bytes;
        const bool fits = !(node->memory_bytes > 0) || (double)bytes <= node->memory_bytes;
        if (!fits && !row->full) row->full = node;
    }
    return BPT_OK;
}

/* ---- the first ranks ---- */

/* @param last what takes part in the end: the memory of the others is not asked for */
static bpt_status plan_way(maker *m, const bpt_team *team, bpt_way way, bool last,
                           bpt_plan_size *size) {
    bpt_work work;
    BPT_TRY(bpt_recipe_work(m->recipe, way, team->n, &work));
    if (!bpt_way_suits(way, team, &work)) return BPT_OK;
    bpt_plan_row *row = &size->rows[size->n_rows++];
    *row = (bpt_plan_row){.way = way, .batch = work.batch};
    bpt_predict(way, team, &work, &m->scratch, &row->forecast);
    return last ? plan_memory(m, team, &work, row) : BPT_OK;
}

static bpt_status plan_size(maker *m, uint32_t n_ranks, bool last, bpt_plan_size *size) {
    const bpt_team team = {.nodes = m->nodes, .n = n_ranks, .latency_s = m->latency_s};
    *size = (bpt_plan_size){.n_ranks = n_ranks};
    for (uint32_t r = 0; r < n_ranks; r++)
        size->alone += bpt_node_alone(m->nodes[r], (double)m->recipe->options->batch_size);
    for (int i = 0; i < BPT_PLAN_WAYS; i++) BPT_TRY(plan_way(m, &team, ways[i], last, size));
    return BPT_OK;
}

static bpt_status plan_sizes(maker *m, bpt_plan *plan) {
    for (uint32_t n = 1;; n = 2 * n < plan->n_ranks ? 2 * n : plan->n_ranks) {
        const bool last = n == plan->n_ranks;
        BPT_TRY(plan_size(m, n, last, &plan->sizes[plan->n_sizes++]));
        if (last) return BPT_OK;
    }
}

/* Nothing is foretold of what bpt-train would refuse. */
static bpt_status check_ways(const bpt_recipe *recipe, const bpt_plan *plan) {
    const int64_t batch = recipe->options->batch_size;
    const bpt_layer *layer;
    const bool small = batch < bpt_model_least_batch(recipe->model, &layer);
    if (bpt_plan_whole(plan)->n_rows > 0) return BPT_OK;
    const bpt_status status =
        small ? bpt_fail(BPT_EUSAGE,
                         "--batch-size %" PRId64 ": batch norm %s cannot learn from so few samples",
                         batch, layer->name)
              : bpt_fail(BPT_EUSAGE,
                         "a step of %" PRIu32 " rank%s takes more samples than the %" PRIu64
                         " of an epoch",
                         plan->n_ranks, plan->n_ranks == 1 ? "" : "s", recipe->epoch_samples);
    bpt_hint(small ? "raise --batch-size" : "lower --batch-size, or give fewer --ranks");
    return status;
}

/* ---- the choice ---- */

static bool is_faster(const bpt_plan_row *a, const bpt_plan_row *b) {
    return !b || a->forecast.images_per_s > b->forecast.images_per_s;
}

/* As --update auto does: allreduce, of which most is known, where it comes to enough. */
static bool is_like_one_machine(const bpt_plan_row *row) {
    const bpt_step_costs costs = {.part = row->forecast.part};
    return row->way.update == BPT_UPDATE_ALLREDUCE && bpt_prefers_allreduce(&costs);
}

static void choose(bpt_plan *plan) {
    const bpt_plan_size *whole = bpt_plan_whole(plan);
    const bpt_plan_row *like_one = NULL;
    for (size_t i = 0; i < whole->n_rows; i++) {
        const bpt_plan_row *row = &whole->rows[i];
        if (row->full) continue;
        if (is_faster(row, plan->fastest)) plan->fastest = row;
        if (is_like_one_machine(row) && is_faster(row, like_one)) like_one = row;
    }
    plan->chosen = like_one ? like_one : plan->fastest;
}

/* A machine too many may cost more than one that is missing. What fewer ranks do counts from here
 * on, as far as it fits their memory. */
static bpt_status find_fewer(maker *m, bpt_plan *plan) {
    const double clearly = 1.01;
    double most = plan->chosen ? clearly * plan->chosen->forecast.images_per_s : 0;
    for (size_t s = plan->n_sizes - 1; s-- > 0;) {
        bpt_plan_size *size = &plan->sizes[s];
        const bpt_team team = {.nodes = m->nodes, .n = size->n_ranks, .latency_s = m->latency_s};
        for (size_t i = 0; i < size->n_rows; i++) {
            bpt_plan_row *row = &size->rows[i];
            bpt_work work;
            if (!(row->forecast.images_per_s > most)) continue;
            BPT_TRY(bpt_recipe_work(m->recipe, row->way, team.n, &work));
            BPT_TRY(plan_memory(m, &team, &work, row));
            if (row->full) continue;
            most = row->forecast.images_per_s;
            plan->fewer = size;
            plan->fewer_way = row;
        }
    }
    return BPT_OK;
}

/* What a rank brings: the others without it. */
static bpt_status find_gains(maker *m, bpt_plan *plan) {
    const bpt_node *without;
    bpt_work work;
    bpt_forecast f;
    const bool alone = plan->n_ranks == 2;
    const bpt_way way = alone ? ways[0] : plan->chosen->way;
    const bpt_team others = {.nodes = m->nodes, .n = plan->n_ranks - 1, .latency_s = m->latency_s};
    BPT_TRY(bpt_recipe_work(m->recipe, way, others.n, &work));
    for (uint32_t r = plan->n_ranks; r-- > 0;) { /* the last place is that of the one left out */
        const bool like_next = r + 1 < plan->n_ranks && plan->nodes[r] == plan->nodes[r + 1];
        without = m->nodes[r];
        m->nodes[r] = m->nodes[others.n];
        m->nodes[others.n] = without;
        if (!like_next) bpt_predict(way, &others, &work, &m->scratch, &f);
        plan->gain[r] = 1 - f.images_per_s / plan->chosen->forecast.images_per_s;
        m->nodes[others.n] = m->nodes[r];
        m->nodes[r] = without;
    }
    return BPT_OK;
}

/* ---- life ---- */

static bpt_status reserve(const bpt_cluster *cluster, bpt_plan *plan, maker *m) {
    const uint32_t n = plan->n_ranks;
    BPT_TRY(BPT_NEW("nodes of ranks", n, &plan->nodes));
    BPT_TRY(BPT_NEW("speeds of ranks", n, &plan->alone));
    BPT_TRY(BPT_NEW("what ranks bring", n, &plan->gain));
    for (uint32_t r = 0; r < n; r++) plan->nodes[r] = bpt_cluster_node_of(cluster, r);
    BPT_TRY(BPT_NEW("nodes of ranks", n, &m->nodes));
    for (uint32_t r = 0; r < n; r++) m->nodes[r] = plan->nodes[r];
    BPT_TRY(BPT_NEW("memory of ranks", n, &m->known));
    return bpt_plan_scratch_make(n, &m->scratch);
}

static bpt_status make(maker *m, bpt_plan *plan) {
    const double batch = (double)m->recipe->options->batch_size;
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        plan->alone[r] = bpt_node_alone(plan->nodes[r], batch);
    BPT_TRY(plan_sizes(m, plan));
    BPT_TRY(check_ways(m->recipe, plan));
    choose(plan);
    BPT_TRY(find_fewer(m, plan));
    return plan->chosen && plan->n_ranks > 1 ? find_gains(m, plan) : BPT_OK;
}

bpt_status bpt_plan_make(const bpt_recipe *recipe, const bpt_cluster *cluster, uint32_t ranks,
                         bpt_plan *plan) {
    maker m = {.recipe = recipe, .latency_s = cluster->latency_s};
    *plan = (bpt_plan){.n_ranks = ranks ? ranks : bpt_cluster_ranks(cluster)};
    bpt_status status = reserve(cluster, plan, &m);
    if (status == BPT_OK) status = make(&m, plan);
    bpt_plan_scratch_free(&m.scratch);
    bpt_free(m.known);
    bpt_free(m.nodes);
    return status;
}

void bpt_plan_free(bpt_plan *plan) {
    bpt_free(plan->nodes);
    bpt_free(plan->alone);
    bpt_free(plan->gain);
    *plan = (bpt_plan){0};
}
