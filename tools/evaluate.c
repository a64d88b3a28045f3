#include "tools/evaluate.h"

#include "base/memory.h"
#include "storage/loader/loader.h"

typedef struct {
    const bpt_evaluation *e;
    bpt_loader *loader;
    uint32_t *indices;   /* shape [batch] */
    bpt_answer *answers; /* shape [batch]; NULL: nobody asks */
    int32_t *any_class;  /* shape [batch]; in place of labels; NULL: there are labels */
    uint32_t requested;
} reader;

static bpt_status request_ahead(reader *r) {
    while (r->requested < r->e->count && bpt_loader_room(r->loader) > 0) {
        uint32_t n = r->e->count - r->requested;
        if (n > r->e->batch) n = r->e->batch;
        for (uint32_t i = 0; i < n; i++) r->indices[i] = r->e->first + r->requested + i;
        BPT_TRY(bpt_loader_request(r->loader, r->indices, NULL, n));
        r->requested += n;
    }
    return BPT_OK;
}

static bpt_status pass_on(const reader *r, const bpt_batch *batch, uint32_t done) {
    const bpt_batch_answers given = {
        .first = r->e->first + done,
        .n = batch->n,
        .labels = batch->labels,
        .answers = r->answers,
    };
    return r->e->take(r->e->take_arg, &given);
}

/* A network evaluates nothing but samples of some class. */
static const int32_t *labels_of(const reader *r, const bpt_batch *batch) {
    if (!r->any_class) return batch->labels;
    for (uint32_t i = 0; i < r->e->batch; i++) r->any_class[i] = i < batch->n ? 0 : -1;
    return r->any_class;
}

/* Takes away what was said of that class. */
static void forget_labels(const reader *r, const bpt_batch *batch, bpt_batch_result *result) {
    result->loss_sum = 0.0;
    result->n_correct = 0;
    for (uint32_t i = 0; r->answers && i < batch->n; i++) r->answers[i].label_probability = 0.0;
}

static bpt_status evaluate_all(bpt_network *net, reader *r, bpt_batch_result *sum) {
    for (uint32_t done = 0; done < r->e->count;) {
        bpt_batch batch;
        bpt_batch_result result;
        if (r->e->stop && r->e->stop(r->e->stop_arg))
            return bpt_fail(BPT_ESTOPPED, "evaluation was stopped");
        BPT_TRY(request_ahead(r));
        BPT_TRY(bpt_loader_next(r->loader, &batch));
        if (bpt_network_device(net)) bpt_network_set_next(net, bpt_loader_peek(r->loader));
        BPT_TRY(bpt_network_evaluate(net, batch.input, labels_of(r, &batch), &result));
        if (r->any_class) forget_labels(r, &batch, &result);
        if (r->answers) BPT_TRY(pass_on(r, &batch, done));
        done += batch.n;
        bpt_loader_release(r->loader, &batch);
        sum->loss_sum += result.loss_sum;
        sum->n_correct += result.n_correct;
        sum->n_samples += result.n_samples;
    }
    return BPT_OK;
}

bpt_status bpt_evaluate(bpt_network *net, const bpt_evaluation *e, bpt_batch_result *result) {
    const bpt_loader_options options = {
        .batch = e->batch,
        .n_threads = e->loader_threads,
        .depth = BPT_EVALUATION_DEPTH,
        .as_images = bpt_network_takes_images(net),
        .mean = e->normalise->mean,
        .std = e->normalise->std,
    };
    reader r = {.e = e};
    bpt_status status;
    *result = (bpt_batch_result){0};
    BPT_TRY(BPT_NEW("evaluation indices", e->batch, &r.indices));
    if (e->take) BPT_TRY_GOTO(status, BPT_NEW("answers", e->batch, &r.answers), done);
    if (e->no_labels) BPT_TRY_GOTO(status, BPT_NEW("labels", e->batch, &r.any_class), done);
    BPT_TRY_GOTO(status, bpt_loader_create(e->dataset, e->split, &options, &r.loader), done);
    if (r.answers) bpt_network_tell_answers(net, r.answers);
    status = evaluate_all(net, &r, result);
    if (r.answers) bpt_network_tell_answers(net, NULL);
    bpt_loader_destroy(r.loader);
done:
    bpt_free(r.any_class);
    bpt_free(r.answers);
    bpt_free(r.indices);
    return status;
}
