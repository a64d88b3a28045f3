#include "tools/train/exchange/quality.h"

#include "base/memory.h"

enum { DEPTH = 1 }; /* batches: the one that comes next */

struct bpt_quality {
    const uint32_t *records; /* shape [n]; borrowed */
    uint32_t n, n_batch;     /* held out; of them in a batch */
    uint32_t *indices;       /* shape [n_batch] */
    bpt_loader *loader;
    bpt_quality_state state;
};

void bpt_quality_note(bpt_quality_state *state, uint64_t n_correct, uint64_t n_samples) {
    const double latest = ((double)n_correct + 1) / ((double)n_samples + 2);
    state->mean = state->taken == 0 ? latest : state->mean + (latest - state->mean) / 4;
    state->taken++;
}

bpt_loader_options bpt_quality_loader(const bpt_split *train, uint32_t batch, bool as_images) {
    return (bpt_loader_options){
        .batch = batch,
        .n_threads = 1,
        .depth = DEPTH,
        .as_images = as_images,
        .mean = train ? train->mean : NULL,
        .std = train ? train->std : NULL,
    };
}

/* The batch that is evaluated next. */
static bpt_status request(bpt_quality *q) {
    const uint64_t first = q->state.taken % q->n * q->n_batch;
    for (uint32_t i = 0; i < q->n_batch; i++) q->indices[i] = q->records[(first + i) % q->n];
    return bpt_loader_request(q->loader, q->indices, NULL, q->n_batch);
}

bpt_status bpt_quality_create(const bpt_dataset *dataset, const bpt_split *train,
                              const uint32_t *records, uint32_t n, uint32_t batch, bool as_images,
                              bpt_quality_state state, bpt_quality **out) {
    const bpt_loader_options options = bpt_quality_loader(train, batch, as_images);
    bpt_quality *q = NULL;
    BPT_TRY(BPT_NEW("quality", 1, &q));
    *q =
        (bpt_quality){.records = records, .n = n, .n_batch = n < batch ? n : batch, .state = state};
    bpt_status status = BPT_NEW("records to judge by", q->n_batch, &q->indices);
    if (status == BPT_OK) status = bpt_loader_create(dataset, train, &options, &q->loader);
    if (status == BPT_OK) status = request(q);
    if (status == BPT_OK)
        *out = q;
    else
        bpt_quality_free(q);
    return status;
}

void bpt_quality_free(bpt_quality *q) {
    if (!q) return;
    bpt_loader_destroy(q->loader);
    bpt_free(q->indices);
    bpt_free(q);
}

bpt_status bpt_quality_measure(bpt_quality *q, bpt_network *network) {
    bpt_batch batch;
    bpt_batch_result result;
    BPT_TRY(bpt_loader_next(q->loader, &batch));
    const bpt_status status = bpt_network_evaluate(network, batch.input, batch.labels, &result);
    bpt_loader_release(q->loader, &batch);
    BPT_TRY(status);
    bpt_quality_note(&q->state, result.n_correct, result.n_samples);
    return request(q);
}

bpt_quality_state bpt_quality_state_get(const bpt_quality *q) {
    return q->state;
}

void bpt_quality_put(bpt_quality_state state, bpt_json_writer *w, const char *key) {
    bpt_json_open_object(w, key);
    bpt_json_put_u64(w, "taken", state.taken);
    bpt_json_put_real(w, "mean", state.mean);
    bpt_json_close_object(w);
}

bpt_status bpt_quality_get(const bpt_json_doc *doc, const bpt_json *object, const char *key,
                           bpt_quality_state *state) {
    const bpt_json *o;
    BPT_TRY(bpt_json_get_object(doc, object, key, &o));
    BPT_TRY(bpt_json_get_u64(doc, o, "taken", 0, UINT64_MAX, &state->taken));
    BPT_TRY(bpt_json_get_real(doc, o, "mean", &state->mean));
    if (state->mean >= 0 && state->mean < 1) return BPT_OK;
    return bpt_fail(BPT_EDATA, "the saved quality is %g", state->mean);
}
