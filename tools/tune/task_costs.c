#include "tools/tune/task_costs.h"

#include "base/memory.h"
#include "tools/spread.h"

#include <string.h>

/* A layer's tasks of one kind. */
typedef struct {
    const char *label, *kind;
    double ns[BPT_COST_STEPS]; /* of one task */
    size_t n;
} row;

struct bpt_task_costs {
    row *rows;
    size_t n_rows, capacity;
    size_t next; /* where the next row should be: steps are alike */
    bpt_status status;
};

bpt_status bpt_task_costs_create(bpt_task_costs **costs) {
    return BPT_NEW("costs of tasks", 1, costs);
}

void bpt_task_costs_free(bpt_task_costs *costs) {
    if (!costs) return;
    bpt_free(costs->rows);
    bpt_free(costs);
}

static row *find(bpt_task_costs *c, const char *label, const char *kind) {
    for (size_t n = 0; n < c->n_rows; n++) {
        const size_t i = (c->next + n) % c->n_rows;
        if (strcmp(c->rows[i].label, label) != 0 || strcmp(c->rows[i].kind, kind) != 0) continue;
        c->next = i + 1;
        return &c->rows[i];
    }
    c->status = BPT_GROW("costs of tasks", c->n_rows + 1, &c->rows, &c->capacity);
    if (c->status != BPT_OK) return NULL;
    c->rows[c->n_rows] = (row){.label = label, .kind = kind};
    return &c->rows[c->n_rows++];
}

static void note(void *context, const char *label, const char *kind, unsigned n_tasks,
                 uint64_t ns) {
    bpt_task_costs *c = context;
    row *r = c->status == BPT_OK ? find(c, label, kind) : NULL;
    if (r && r->n < BPT_COST_STEPS) r->ns[r->n++] = (double)ns / n_tasks;
}

bpt_status bpt_task_costs_note(bpt_task_costs *costs, const bpt_network *network) {
    costs->next = 0;
    costs->status = BPT_OK;
    bpt_network_visit_times(network, note, costs);
    return costs->status;
}

bpt_status bpt_task_costs_list(const bpt_task_costs *costs, bpt_task_cost **list, size_t *n) {
    bpt_task_cost *out;
    BPT_TRY(BPT_NEW("costs of tasks", costs->n_rows, &out));
    for (size_t i = 0; i < costs->n_rows; i++) {
        row r = costs->rows[i];
        const double median = bpt_spread_of(r.ns, r.n).median;
        out[i] = (bpt_task_cost){r.label, r.kind, median >= 1.0 ? (uint64_t)median : 1};
    }
    *list = out;
    *n = costs->n_rows;
    return BPT_OK;
}
