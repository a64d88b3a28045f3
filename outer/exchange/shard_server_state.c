#include "outer/exchange/shard_server_state.h"

#include "base/memory.h"

#include <string.h>

/* ---- life ---- */

/* Where submissions and answers are. */
static void set_places(bpt__server *s, size_t stride) {
    size_t at = 0;
    for (uint32_t j = 0; j < s->options.n_workers; j++) {
        if (j == s->options.rank) {
            s->part[j] = s->options.own.part;
            s->answer[j] = s->options.own.values;
            continue;
        }
        s->part[j] = s->buffer[j] = s->buffer_block + at;
        s->answer[j] = (s->answer_block ? s->answer_block : s->buffer_block) + at;
        at += stride;
    }
}

static bpt_status allocate(bpt__server *s) {
    const uint32_t m = s->options.n_workers;
    const size_t stride = (s->options.n + 15) / 16 * 16;
    size_t n_buffered = 0;
    const size_t n_remote = s->options.rank < m ? m - 1 : m;
    BPT_TRY(bpt_size_multiply(n_remote, stride, &n_buffered));
    BPT_TRY(BPT_NEW("hosted shard", s->options.n, &s->global));
    if (s->options.terms.momentum > 0)
        BPT_TRY(BPT_NEW("velocity of a shard", s->options.n, &s->velocity));
    BPT_TRY(BPT_NEW("submissions to a shard", n_buffered, &s->buffer_block));
    if (s->options.terms.compensation > 0)
        BPT_TRY(BPT_NEW("answers of a shard", n_buffered, &s->answer_block));
    BPT_TRY(BPT_NEW("answers of a shard", m, &s->answer));
    BPT_TRY(BPT_NEW("submissions to a shard", m, &s->buffer));
    BPT_TRY(BPT_NEW("submissions to a shard", m, &s->part));
    BPT_TRY(BPT_NEW("submissions' headers", m, &s->up));
    BPT_TRY(bpt_alloc("answers' headers", m, s->down_bytes, (void **)&s->down));
    BPT_TRY(BPT_NEW("states of workers", m, &s->state));
    BPT_TRY(BPT_NEW("queue of submissions", m, &s->queue));
    BPT_TRY(BPT_NEW("held submissions", m, &s->held));
    BPT_TRY(BPT_NEW("base versions", m, &s->base));
    BPT_TRY(BPT_NEW("stalenesses", m, &s->staleness));
    BPT_TRY(BPT_NEW("qualities", m, &s->now.quality));
    BPT_TRY(BPT_NEW("gammas", m, &s->gamma));
    BPT_TRY(BPT_NEW("factors", m, &s->factor));
    BPT_TRY(BPT_NEW("clocks", m, &s->clocks.clock));
    BPT_TRY(BPT_NEW("active workers", m, &s->clocks.active));
    BPT_TRY(BPT_NEW("submissions taken", m, &s->now.seq));
    BPT_TRY(BPT_NEW("submissions taken", m, &s->met.seq));
    BPT_TRY(BPT_NEW("qualities", m, &s->met.quality));
    set_places(s, stride);
    return BPT_OK;
}

bpt_status bpt__server_create(const bpt__server_options *options, bpt__server **server) {
    const uint32_t m = options->n_workers;
    bpt__server *s = NULL;
    BPT_TRY(BPT_NEW("shard server", 1, &s));
    s->options = *options;
    s->down_bytes = bpt__down_bytes(options->shard, m);
    const bpt_status status = allocate(s);
    if (status != BPT_OK) {
        bpt__server_free(s);
        return status;
    }
    memcpy(s->global, options->initial, options->n * sizeof *s->global);
    if (s->velocity && options->velocity)
        memcpy(s->velocity, options->velocity, options->n * sizeof *s->velocity);
    if (options->terms.compensation > 0) /* what the first submissions grow from */
        for (uint32_t j = 0; j < m; j++)
            memcpy(s->answer[j], options->initial, options->n * sizeof *s->answer[j]);
    s->clocks.n_workers = m;
    s->clocks.bound = options->max_staleness;
    bpt_clocks_level(&s->clocks);
    s->options.initial = s->options.velocity = NULL;
    *server = s;
    return BPT_OK;
}

void bpt__server_free(bpt__server *s) {
    if (!s) return;
    bpt_free(s->met.quality);
    bpt_free(s->met.seq);
    bpt_free(s->now.seq);
    bpt_free(s->clocks.active);
    bpt_free(s->clocks.clock);
    bpt_free(s->factor);
    bpt_free(s->gamma);
    bpt_free(s->now.quality);
    bpt_free(s->staleness);
    bpt_free(s->base);
    bpt_free(s->held);
    bpt_free(s->queue);
    bpt_free(s->state);
    bpt_free(s->down);
    bpt_free(s->up);
    bpt_free(s->part);
    bpt_free(s->answer);
    bpt_free(s->buffer);
    bpt_free(s->answer_block);
    bpt_free(s->buffer_block);
    bpt_free(s->velocity);
    bpt_free(s->global);
    bpt_free(s);
}

/* ---- state ---- */

void bpt__server_keep(bpt__server *s) {
    const size_t m = s->options.n_workers;
    uint64_t *seq = s->met.seq;
    double *quality = s->met.quality;
    s->met = s->now;
    s->met.seq = memcpy(seq, s->now.seq, m * sizeof *seq);
    s->met.quality = memcpy(quality, s->now.quality, m * sizeof *quality);
}

void bpt__save_counts(bpt_json_writer *w, const char *key, size_t n, const uint64_t *counts) {
    bpt_json_open_array(w, key);
    for (size_t i = 0; i < n; i++) bpt_json_put_u64(w, NULL, counts[i]);
    bpt_json_close_array(w);
}

static void save_qualities(bpt_json_writer *w, size_t m, const double *quality) {
    bpt_json_open_array(w, "quality");
    for (size_t j = 0; j < m; j++) bpt_json_put_real(w, NULL, quality[j]);
    bpt_json_close_array(w);
}

void bpt__server_save(const bpt__server *s, bpt_json_writer *w) {
    bpt_json_put_text(w, "rule", s->options.rule->name);
    bpt_json_put_u64(w, "shard", s->options.shard);
    bpt_json_put_u64(w, "version", s->met.version);
    bpt__save_counts(w, "seq", s->options.n_workers, s->met.seq);
    bpt__save_counts(w, "staleness", BPT_STALENESS_BUCKETS, s->met.staleness);
    save_qualities(w, s->options.n_workers, s->met.quality);
}

bpt_status bpt__load_counts(const bpt_json_doc *doc, const bpt_json *state, const char *key,
                            size_t n, uint64_t *out) {
    const bpt_json *array = NULL;
    BPT_TRY(bpt_json_get_array(doc, state, key, &array));
    if (bpt_json_size(array) != n)
        return bpt_fail(BPT_EDATA, "the saved exchange has %zu items in %s instead of %zu",
                        bpt_json_size(array), key, n);
    for (size_t i = 0; i < n; i++)
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(array, i), NULL, 0, UINT64_MAX, &out[i]));
    return BPT_OK;
}

/* Checkpoints of earlier versions say nothing: a rank counts once it has pushed. */
static bpt_status load_qualities(const bpt_json_doc *doc, const bpt_json *state, size_t m,
                                 double *quality) {
    const bpt_json *array = NULL;
    if (!bpt_json_find(state, "quality")) return BPT_OK;
    BPT_TRY(bpt_json_get_array(doc, state, "quality", &array));
    if (bpt_json_size(array) != m)
        return bpt_fail(BPT_EDATA, "the saved exchange has %zu qualities of %zu ranks",
                        bpt_json_size(array), m);
    for (size_t j = 0; j < m; j++)
        BPT_TRY(bpt_json_get_real(doc, bpt_json_at(array, j), NULL, &quality[j]));
    return BPT_OK;
}

bpt_status bpt__server_load(bpt__server *s, const bpt_json_doc *doc, const bpt_json *state) {
    const bpt__server_options *o = &s->options;
    const char *rule = NULL;
    uint64_t number = 0;
    BPT_TRY(bpt_json_get_text(doc, state, "rule", &rule));
    if (strcmp(rule, o->rule->name) != 0)
        return bpt_fail(BPT_EDATA, "the saved exchange is of rule %s, not %s", rule, o->rule->name);
    BPT_TRY(bpt_json_get_u64(doc, state, "shard", o->shard, o->shard, &number));
    BPT_TRY(bpt_json_get_u64(doc, state, "version", 0, UINT64_MAX, &s->now.version));
    BPT_TRY(bpt__load_counts(doc, state, "seq", o->n_workers, s->now.seq));
    BPT_TRY(bpt__load_counts(doc, state, "staleness", BPT_STALENESS_BUCKETS, s->now.staleness));
    BPT_TRY(load_qualities(doc, state, o->n_workers, s->now.quality));
    for (uint32_t j = 0; j < o->n_workers; j++) s->base[j] = s->now.version;
    bpt__server_keep(s);
    return BPT_OK;
}
