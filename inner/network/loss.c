/* Softmax cross-entropy: logits -> loss, hits and the gradient of the logits. */
#include "inner/network/network_private.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    bpt_network *net;
    bpt_ref logits, labels, grad;
    int64_t first, n; /* samples of the batch */
    int64_t classes;
    bpt_batch_result *result;
} loss_chunk;

/* The classes of a sample. */
typedef struct {
    int32_t label;      /* -1: the sample is not there */
    int32_t second;     /* -1: it has no second one */
    double second_part; /* of the target; 0 without a second one */
} sample_classes;

static int64_t arg_max(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* Loss -log(softmax(x)[label]) of one sample, and, unless grad is NULL, its gradient (softmax(x) -
 * one_hot(label)) * scale. The largest logit is subtracted so that nothing overflows; the sum is in
 * double, so that the gradient of a sample that is learned keeps its digits when 1 is subtracted.
 */
static double sample_loss(const float *x, int64_t largest, int32_t label, int64_t classes,
                          float scale, float *grad) {
    double sum = 0.0;
    for (int64_t k = 0; k < classes; k++) {
        const float e = expf(x[k] - x[largest]);
        if (grad) grad[k] = e;
        sum += (double)e;
    }
    for (int64_t k = 0; grad && k < classes; k++)
        grad[k] = (float)((double)grad[k] / sum - (k == label ? 1.0 : 0.0)) * scale;
    /* The difference first: added to a large logit the logarithm would be lost. */
    return log(sum) + ((double)x[largest] - (double)x[label]);
}

/* The same with a target of several classes. A sample that is of two is so by its parts; and of
 * that, a part goes to all classes alike (Szegedy, Vanhoucke, Ioffe, Shlens, Wojna 2016, section 7,
 * as PyTorch's CrossEntropyLoss). The target is (1 - smoothing) * ((1 - second_part) *
 * one_hot(label) + second_part * one_hot(second)) + smoothing / classes. */
static double mixed_loss(const float *x, int64_t largest, const sample_classes *of, int64_t classes,
                         double smoothing, float scale, float *grad) {
    const int32_t second = of->second < 0 ? of->label : of->second; /* with a part of 0 then */
    const double of_first = (1.0 - smoothing) * (1.0 - of->second_part);
    const double of_second = (1.0 - smoothing) * of->second_part;
    const double each = smoothing / (double)classes;
    double sum = 0.0, below = 0.0; /* below: of the logits, how far from the largest */
    for (int64_t k = 0; k < classes; k++) {
        grad[k] = expf(x[k] - x[largest]);
        sum += (double)grad[k];
        below += (double)x[largest] - (double)x[k];
    }
    for (int64_t k = 0; k < classes; k++)
        grad[k] = (float)((double)grad[k] / sum - (k == of->label ? of_first : 0.0) -
                          (k == second ? of_second : 0.0) - each) *
                  scale;
    return log(sum) + of_first * ((double)x[largest] - (double)x[of->label]) +
           of_second * ((double)x[largest] - (double)x[second]) + each * below;
}

/* @param loss -log(softmax(x)[label]) */
static bpt_answer answer_of(const float *x, int64_t largest, int32_t label, double loss) {
    const double below = (double)x[largest] - (double)x[label]; /* 0 where it is the label */
    return (bpt_answer){
        .predicted = (int32_t)largest,
        .probability = exp(below - loss),
        .label_probability = exp(-loss),
    };
}

/* @param i number of the sample in the batch
 * @param trains whether gradients are computed: an evaluation does not look at second labels */
static sample_classes classes_of(const bpt_network *net, int32_t label, int64_t i, bool trains) {
    sample_classes of = {.label = label, .second = -1};
    if (!trains || !net->second.labels || net->second.labels[i] < 0) return of;
    of.second = net->second.labels[i];
    of.second_part = (double)net->second.parts[i];
    assert(of.second_part >= 0.0 && of.second_part <= 1.0);
    return of;
}

static bpt_status check_class(int32_t label, int64_t classes) {
    if (label < classes) return BPT_OK;
    return bpt_fail(BPT_EDATA, "a label is %" PRId32 ", and the model has %" PRId64 " classes",
                    label, classes);
}

/* @param i number of the sample in the chunk; @param x its logits
 * @param grad of these; NULL in an evaluation
 * @param[in,out] result what the sample has is added */
static bpt_status take_sample(const loss_chunk *chunk, int64_t i, int32_t label, const float *x,
                              float *grad, bpt_batch_result *result) {
    const bpt_network *net = chunk->net;
    const int64_t classes = chunk->classes, number = chunk->first + i;
    const float scale = 1.0f / net->step.denominator;
    const double smoothing = net->learning.label_smoothing;
    const sample_classes of = classes_of(net, label, number, grad != NULL);
    BPT_TRY(check_class(of.label, classes));
    BPT_TRY(check_class(of.second, classes));
    if (of.label < 0) { /* not 0 times something: that may be NaN here */
        if (grad) memset(grad, 0, (size_t)classes * sizeof *grad);
        return BPT_OK;
    }
    const int64_t largest = arg_max(x, classes);
    const double loss = of.second >= 0 || (grad && smoothing > 0.0)
                            ? mixed_loss(x, largest, &of, classes, smoothing, scale, grad)
                            : sample_loss(x, largest, of.label, classes, scale, grad);
    if (!grad && net->answers) net->answers[number] = answer_of(x, largest, of.label, loss);
    result->loss_sum += loss;
    result->n_correct += largest == (of.second_part > 0.5 ? of.second : of.label);
    result->n_samples++;
    return BPT_OK;
}

static bpt_status run_loss(void *arg, unsigned worker) {
    (void)worker;
    const loss_chunk *chunk = arg;
    const bpt_blocks *blocks = &chunk->net->blocks;
    const float *x = bpt_at(blocks, chunk->logits);
    const int32_t *labels = bpt_at(blocks, chunk->labels);
    float *grad = chunk->net->step.trains ? bpt_at(blocks, chunk->grad) : NULL;
    bpt_batch_result result = {0};
    for (int64_t i = 0; i < chunk->n; i++) {
        const int64_t at = i * chunk->classes;
        BPT_TRY(take_sample(chunk, i, labels[i], x + at, grad ? grad + at : NULL, &result));
    }
    *chunk->result = result;
    /* Ends the step before any weight is changed: what led here can be computed again. */
    return isfinite(result.loss_sum) ? BPT_OK
                                     : bpt_fail(BPT_ENUMERIC, "the loss is not a finite number");
}

static void plan_chunk(bpt_network *net, const bpt_activation *logits, size_t c,
                       loss_chunk *chunk) {
    const bpt_builder *b = &net->builder;
    const size_t first = b->chunk_tile[c];
    *chunk = (loss_chunk){
        .net = net,
        .logits = logits->value[first],
        .labels = bpt_ref_in(BPT_BLOCK_LABELS, (size_t)b->chunk_start[c] * sizeof(int32_t)),
        .grad = b->forward_only ? (bpt_ref){0} : logits->grad[first],
        .first = b->chunk_start[c],
        .n = bpt_builder_chunk_samples(b, c),
        .classes = net->model->classes,
        .result = &net->chunks[c].result,
    };
}

bpt_status bpt__plan_loss(bpt_network *net, bpt_activation *logits) {
    bpt_builder *b = &net->builder;
    bpt_activation plain;
    assert(logits->wants_grad); /* a model has weights somewhere */
    BPT_TRY(bpt_builder_convert_to_plain(b, "loss", logits, BPT_F32, &plain));
    for (size_t c = 0; c < b->n_chunks; c++) {
        loss_chunk *chunk;
        bpt_deps after, done;
        BPT_TRY(BPT_BUILDER_NEW(b, 1, &chunk));
        plan_chunk(net, &plain, c, chunk);
        BPT_TRY(bpt_deps_of_chunk(b, plain.value_ready, c, &after));
        BPT_TRY(bpt_builder_task(b, BPT_PHASE_LOSS, run_loss, chunk,
                                 (bpt_task_info){"loss", "loss"},
                                 BPT_PLACES(chunk->logits, chunk->grad), after, &done));
        for (size_t t = b->chunk_tile[c]; t < b->chunk_tile[c + 1]; t++) plain.grad_ready[t] = done;
    }
    return b->forward_only ? BPT_OK : bpt_builder_convert_back(b, "loss", logits, &plain);
}
