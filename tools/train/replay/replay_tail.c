#include "tools/train/replay/replay_tail.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "inner/models/model_part.h"
#include "inner/network/network_border.h"
#include "tools/train/options/learning_options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    uint32_t worker;
    float rate;
} update;

struct bpt_replay_tail {
    char *path; /* of the log */
    uint32_t n_workers;
    float batch; /* samples of a worker's step */
    bpt_model *head_model, *model;
    bpt_network *network;
    update *updates; /* number i is on line i + 2; shape [n_updates] */
    size_t n_updates, capacity, n_made;
    uint64_t *steps; /* of each worker, read; shape [n_workers] */
};

/* ---- the log ---- */

static bpt_status take_first(bpt_replay_tail *t, const bpt_json_doc *d, const bpt_model *whole) {
    size_t border;
    const char *layer;
    BPT_TRY(bpt_json_get_text(d, bpt_json_root(d), "placement", &layer));
    if (bpt_model_find_border(whole, layer, &border) != BPT_OK)
        return bpt_fail(BPT_EDATA, "%s, line 1: \"placement\": %.400s", t->path,
                        bpt_error_last()->text);
    if (whole->n_frozen > 0) /* somebody has changed the run's configuration */
        return bpt_fail(BPT_EDATA, "%s, line 1: \"placement\", of a run with frozen layers",
                        t->path);
    BPT_TRY(bpt_model_part(whole, border, BPT_MODEL_HEAD, &t->head_model));
    return bpt_model_part(whole, border, BPT_MODEL_TAIL, &t->model);
}

static bpt_status take_update(bpt_replay_tail *t, const bpt_json_doc *d) {
    const bpt_json *o = bpt_json_root(d);
    uint64_t worker, step;
    double rate;
    if (bpt_json_find(o, "placement"))
        return bpt_fail(BPT_EUSAGE,
                        "%s, line %zu: \"placement\" again, as in a resumed run, which cannot be "
                        "replayed",
                        t->path, t->n_updates + 2);
    BPT_TRY(bpt_json_get_u64(d, o, "worker", 0, t->n_workers - 1, &worker));
    BPT_TRY(bpt_json_get_u64(d, o, "step", t->steps[worker], t->steps[worker], &step));
    BPT_TRY(bpt_json_get_real(d, o, "rate", &rate));
    if (bpt_json_size(o) != 3)
        return bpt_fail(BPT_EDATA, "%s, line %zu: %zu fields instead of 3", t->path,
                        t->n_updates + 2, bpt_json_size(o));
    BPT_TRY(BPT_GROW("updates of layers", t->n_updates + 1, &t->updates, &t->capacity));
    t->updates[t->n_updates++] = (update){.worker = (uint32_t)worker, .rate = (float)rate};
    t->steps[worker]++;
    return BPT_OK;
}

static bpt_status take_line(bpt_replay_tail *t, const bpt_model *whole, const char *text,
                            size_t length) {
    bpt_json_doc *doc;
    char *what;
    BPT_TRY(bpt_strf(&what, "%s, line %zu", t->path, t->model ? t->n_updates + 2 : 1));
    bpt_status status = bpt_json_parse(what, text, length, &doc);
    bpt_free(what);
    BPT_TRY(status);
    status = t->model ? take_update(t, doc) : take_first(t, doc, whole);
    bpt_json_doc_free(doc);
    return status;
}

static bpt_status read_log(bpt_replay_tail *t, const bpt_model *whole) {
    char *text;
    size_t size;
    BPT_TRY(bpt_file_read(t->path, (size_t)4 << 30, &text, &size));
    bpt_status status = BPT_OK;
    for (const char *line = text; status == BPT_OK && line < text + size;) {
        const size_t length = strcspn(line, "\n");
        status = take_line(t, whole, line, length);
        line += length + 1;
    }
    bpt_free(text);
    if (status != BPT_OK || t->model) return status;
    return bpt_fail(BPT_EDATA, "%s is empty", t->path);
}

/* @param[out] path caller owns; NULL: no rank has one
 * @param[out] host the rank that has */
static bpt_status find_log(const char *run, uint32_t n_workers, char **path, uint32_t *host) {
    for (uint32_t r = 0; r < n_workers; r++) {
        BPT_TRY(bpt_strf(path, "%s/exchange/border.rank-%" PRIu32 ".jsonl", run, r));
        *host = r;
        if (bpt_path_exists(*path)) return BPT_OK;
        bpt_free(*path);
    }
    *path = NULL;
    return BPT_OK;
}

/* ---- life ---- */

static bpt_status open_parts(bpt_replay_tail *t, const bpt_model *whole, const bpt_train_options *o,
                             bpt_value_type activations, bpt_pool *pool) {
    t->batch = (float)o->batch_size;
    BPT_TRY(BPT_NEW("steps of workers", t->n_workers, &t->steps));
    BPT_TRY(read_log(t, whole));
    return bpt_network_create(t->model, o->batch_size, activations, bpt_train_learning(o, 1), pool,
                              &t->network);
}

bpt_status bpt_replay_tail_open(const bpt_train_options *options, const bpt_replay_rank *ranks,
                                uint32_t n_workers, const bpt_model *whole, bpt_pool *pool,
                                bpt_replay_tail **out) {
    char *path;
    uint32_t host = 0;
    bpt_replay_tail *t = NULL;
    *out = NULL;
    BPT_TRY(find_log(options->replay, n_workers, &path, &host));
    if (!path) return BPT_OK;
    bpt_status status = BPT_NEW("layers of one rank", 1, &t);
    if (status != BPT_OK) {
        bpt_free(path);
        return status;
    }
    t->path = path;
    t->n_workers = n_workers;
    status = open_parts(t, whole, options, ranks[host].activations, pool);
    if (status == BPT_OK)
        *out = t;
    else
        bpt_replay_tail_close(t);
    return status;
}

void bpt_replay_tail_close(bpt_replay_tail *t) {
    if (!t) return;
    bpt_network_free(t->network);
    bpt_model_free(t->model);
    bpt_model_free(t->head_model);
    bpt_free(t->steps);
    bpt_free(t->updates);
    bpt_free(t->path);
    bpt_free(t);
}

/* ---- repeating ---- */

const bpt_model *bpt_replay_tail_head(const bpt_replay_tail *t) {
    return t->head_model;
}

bpt_status bpt_replay_tail_get(bpt_replay_tail *t, float *flat) {
    return bpt_network_get(t->network, BPT_VECTOR_WEIGHTS, flat);
}

bpt_status bpt_replay_tail_set(bpt_replay_tail *t, const float *flat) {
    return bpt_network_set(t->network, BPT_VECTOR_WEIGHTS, flat);
}

bool bpt_replay_tail_is_over(const bpt_replay_tail *t) {
    return t->n_made == t->n_updates;
}

bool bpt_replay_tail_is_next(const bpt_replay_tail *t, uint32_t worker) {
    return !bpt_replay_tail_is_over(t) && t->updates[t->n_made].worker == worker;
}

/* What the head computes before and after does not touch the tail, nor the other way round: it is
 * all the same whether the run had other steps in between. */
bpt_status bpt_replay_tail_step(bpt_replay_tail *t, bpt_network *head, const bpt_batch *batch,
                                bpt_draw draw, float rate, bpt_batch_result *result) {
    const bpt_border border = bpt_network_border(head);
    const float of_tail = rate / (float)t->n_workers, logged = t->updates[t->n_made].rate;
    if (memcmp(&of_tail, &logged, sizeof logged) != 0)
        return bpt_fail(BPT_EDATA, "%s, line %zu: \"rate\" is %.9g, by the options it is %.9g",
                        t->path, t->n_made + 2, (double)logged, (double)of_tail);
    bpt_network_set_draw(head, draw);
    bpt_network_set_draw(t->network, draw);
    BPT_TRY(bpt_network_forward(head, batch->pixels, batch->labels, t->batch));
    BPT_TRY(bpt_network_train(t->network, border.values, batch->labels, of_tail, t->batch, result));
    memcpy(border.gradient, bpt_network_border(t->network).gradient, border.bytes);
    t->n_made++;
    return bpt_network_backward_train(head, rate);
}
