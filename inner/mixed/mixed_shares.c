/* [[forward only, batch, type, layers, elements, input, workers, samples of the cores], ...]; in
 * that of a network with frozen layers their number is the last. */
#include "inner/mixed/mixed_shares.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

enum { N_FIELDS = 8, LINE_SIZE = (N_FIELDS + 1) * 24 + 16 };

void bpt__mixed_shares_clear(bpt__mixed_shares *shares) {
    bpt_free(shares->items);
    *shares = (bpt__mixed_shares){0};
}

static bool equal(const bpt__mixed_problem *a, const bpt__mixed_problem *b) {
    return a->forward_only == b->forward_only && a->batch == b->batch && a->type == b->type &&
           a->layers == b->layers && a->elements == b->elements && a->input == b->input &&
           a->workers == b->workers && a->frozen == b->frozen;
}

static bpt__mixed_share *find(const bpt__mixed_shares *shares, const bpt__mixed_problem *problem) {
    for (size_t i = 0; i < shares->n; i++)
        if (equal(&shares->items[i].problem, problem)) return &shares->items[i];
    return NULL;
}

const bpt__mixed_share *bpt__mixed_shares_find(bpt__mixed_shares *shares,
                                               bpt__mixed_problem problem) {
    bpt__mixed_share *found = find(shares, &problem);
    if (found) found->used = true;
    return found;
}

static bpt_status add(bpt__mixed_shares *shares, const bpt__mixed_share *share) {
    BPT_TRY(BPT_GROW("shares of the cores", shares->n + 1, &shares->items, &shares->capacity));
    shares->items[shares->n++] = *share;
    return BPT_OK;
}

bpt_status bpt__mixed_shares_note(bpt__mixed_shares *shares, bpt__mixed_problem problem,
                                  int64_t n_cores) {
    const bpt__mixed_share share = {.problem = problem, .n_cores = n_cores, .used = true};
    bpt__mixed_share *found = find(shares, &problem);
    if (!found) return add(shares, &share);
    *found = share;
    return BPT_OK;
}

/* ---- files ---- */

/* @param at of LINE_SIZE bytes; @return characters */
static size_t write_share(const bpt__mixed_share *s, char *at) {
    const bpt__mixed_problem *p = &s->problem;
    char frozen[24] = "";
    if (p->frozen > 0) snprintf(frozen, sizeof frozen, ", %" PRId64, p->frozen);
    return (size_t)snprintf(at, LINE_SIZE,
                            "  - [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                            ", %" PRId64 ", %" PRId64 ", %" PRId64 "%s]\n",
                            p->forward_only, p->batch, p->type, p->layers, p->elements, p->input,
                            p->workers, s->n_cores, frozen);
}

bpt_status bpt__mixed_shares_write(const bpt__mixed_shares *shares, char **text) {
    size_t n_used = 0, at;
    for (size_t i = 0; i < shares->n; i++) n_used += shares->items[i].used;
    BPT_TRY(bpt_alloc("text of shares", n_used + 1, LINE_SIZE, (void **)text));
    at = (size_t)snprintf(*text, LINE_SIZE, "%s\n", n_used ? "" : " []");
    for (size_t i = 0; i < shares->n; i++)
        if (shares->items[i].used) at += write_share(&shares->items[i], *text + at);
    return BPT_OK;
}

/* At least one layer is frozen where the number is there, and one is not. */
static bpt_status read_frozen(const bpt_yaml *doc, const bpt_yaml_node *row,
                              bpt__mixed_problem *p) {
    if (bpt_yaml_size(row) == N_FIELDS) return BPT_OK;
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, N_FIELDS), "share", 1, INT64_MAX, &p->frozen));
    if (p->frozen >= p->layers)
        return bpt_yaml_fail(doc, row, "layers that are frozen are not fewer than all layers");
    return BPT_OK;
}

static bpt_status read_share(const bpt_yaml *doc, const bpt_yaml_node *row, bpt__mixed_share *s) {
    bpt__mixed_problem *p = &s->problem;
    int64_t *const fields[N_FIELDS] = {&p->forward_only, &p->batch, &p->type,    &p->layers,
                                       &p->elements,     &p->input, &p->workers, &s->n_cores};
    const size_t n = bpt_yaml_node_kind(row) == BPT_YAML_LIST ? bpt_yaml_size(row) : 0;
    if (n != N_FIELDS && n != N_FIELDS + 1)
        return bpt_yaml_fail(doc, row, "a share is a list of %d numbers, or of one more",
                             (int)N_FIELDS);
    for (size_t i = 0; i < N_FIELDS; i++)
        BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, i), "share", 0, INT64_MAX, fields[i]));
    if (s->n_cores > p->batch)
        return bpt_yaml_fail(doc, row, "the cores' share is more than the batch");
    return read_frozen(doc, row, p);
}

bpt_status bpt__mixed_shares_read(bpt__mixed_shares *shares, const bpt_yaml *doc,
                                  const bpt_yaml_node *list) {
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST)
        return bpt_yaml_fail(doc, list, "shares are a list");
    for (size_t i = 0; i < bpt_yaml_size(list); i++) {
        bpt__mixed_share s = {.used = false};
        BPT_TRY(read_share(doc, bpt_yaml_at(list, i), &s));
        BPT_TRY(add(shares, &s));
    }
    return BPT_OK;
}
