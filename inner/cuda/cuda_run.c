/* What is done with a network on a GPU: runs, and what they leave behind. */
#include "base/images.h"
#include "inner/cuda/cuda_capture.h"
#include "inner/cuda/cuda_hand_out.h"
#include "inner/cuda/cuda_network.h"
#include "inner/cuda/cuda_network_life.h"
#include "inner/cuda/cuda_values.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- before a run ---- */

static void give_labels(const bpt_device_network *net, const bpt_device_run *run) {
    const size_t n = (size_t)net->batch;
    int32_t *labels = net->host_given->labels;
    size_t n_there = 0, end = 0;
    for (size_t i = 0; i < n; i++) {
        if (run->labels[i] < 0) continue;
        n_there++;
        end = i + 1;
    }
    net->host_given->step.n_samples = (float)n_there;
    net->host_given->step.end_sample = (int32_t)end;
    memcpy(labels, run->labels, n * sizeof *labels);
    if (!run->second) return;
    memcpy(labels + n, run->second, n * sizeof *labels);
    memcpy(labels + 2 * n, run->parts, n * sizeof *run->parts);
}

static bpt_status give(bpt_device_network *net, bpt_device_work work, const bpt_device_run *run) {
    bpt_cuda_step *step = &net->host_given->step;
    *step = (bpt_cuda_step){
        .seed = run->draw.seed,
        .step = run->draw.step,
        .first_sample = run->draw.first_sample,
        .updates = run->updates,
        .rate = run->rate,
        .denominator = run->denominator,
        .has_second = run->second != NULL,
        .trains = work != BPT_DEVICE_EVALUATE,
    };
    if (work == BPT_DEVICE_APPLY) return BPT_OK;
    give_labels(net, run);
    if (net->input.images) {
        const bpt_images *images = run->input;
        step->n_images = (int32_t)images->n;
        step->has_moves = images->moves != NULL;
    }
    const bpt_cuda_batch batch = bpt_cuda_input_batch(&net->input, run->input);
    return bpt_cuda_feed_take(net->feed, &batch, net->stream, &step->batch);
}

/* ---- numbers that are no numbers any more ---- */

static bpt_status is_finite(bpt_device_network *net, const bpt_cuda_activation *a, bool *finite) {
    BPT_TRY(bpt_cuda_set(net->stream, net->outcome, 0, sizeof *net->outcome));
    BPT_TRY(bpt_cuda_check_finite(net->stream, bpt__cuda_at(net, a->value), a->type,
                                  bpt__cuda_values(net, a), &net->outcome->bad_loss));
    BPT_TRY(bpt_cuda_copy(net->stream, net->host_outcome, net->outcome, sizeof *net->outcome));
    BPT_TRY(bpt_cuda_wait(net->stream));
    *finite = !net->host_outcome->bad_loss;
    return BPT_OK;
}

/* Computes the forward pass again and looks at each layer's output before another may take its
 * place in memory.
 * @return BPT_ENUMERIC if the input or a layer's output is not finite, else BPT_OK */
static bpt_status trace_forward(bpt_device_network *net, bpt_device_work work, const char *what) {
    const unsigned phases =
        bpt__cuda_phases(work) & (BPT_CUDA_FORWARD | BPT_CUDA_TRAINING | BPT_CUDA_INFERENCE);
    const bpt_model *model = net->model;
    bool finite;
    size_t task = 1;
    bpt_cuda_library_use(net->device->library, net->workspace);
    BPT_TRY(bpt_cuda_run_task(net, &net->tasks[0])); /* the input's */
    BPT_TRY(is_finite(net, &net->activations[0], &finite));
    if (!finite)
        return bpt_fail(BPT_ENUMERIC, "%s is not a finite number, nor is all of the input", what);
    for (size_t i = 0; i < model->n_layers; i++) {
        for (; task < net->forward_end[i]; task++)
            if (net->tasks[task].phase & phases) BPT_TRY(bpt_cuda_run_task(net, &net->tasks[task]));
        BPT_TRY(is_finite(net, &net->activations[i + 1], &finite));
        if (!finite)
            return bpt_fail(BPT_ENUMERIC,
                            "%s is not a finite number: layer %s is the first whose output is not",
                            what, model->layers[i].name);
    }
    return BPT_OK;
}

static bpt_status check(bpt_device_network *net, bpt_device_work work) {
    const bpt_cuda_outcome outcome = *net->host_outcome;
    const bpt_segment *segments = net->model->segments.items;
    if (outcome.bad_label)
        return bpt_fail(BPT_EDATA, "a label is %" PRId32 ", and the model has %" PRId64 " classes",
                        outcome.bad_label - 1, net->model->classes);
    if (outcome.bad_loss) {
        BPT_TRY(trace_forward(net, work, "the loss"));
        return bpt_fail(BPT_ENUMERIC, "the loss is not a finite number");
    }
    if ((outcome.bad_gradient || outcome.bad_norm) && work != BPT_DEVICE_APPLY)
        BPT_TRY(trace_forward(net, work, "a gradient"));
    if (outcome.bad_gradient)
        return bpt_fail(BPT_ENUMERIC, "a gradient is not a finite number, beginning at %s",
                        segments[outcome.bad_gradient - 1].name);
    if (outcome.bad_norm)
        return bpt_fail(BPT_ENUMERIC, "a norm of gradients is not a finite number");
    if (outcome.bad_weight)
        return bpt_fail(BPT_ENUMERIC, "a weight is not a finite number, beginning at %s",
                        segments[outcome.bad_weight - 1].name);
    return BPT_OK;
}

static bpt_status begin(bpt_device_network *net, bpt_device_work work, const bpt_device_run *run) {
    BPT_TRY(give(net, work, run));
    BPT_TRY(bpt_cuda_start(net, work));
    if (!run->next || work == BPT_DEVICE_APPLY) return BPT_OK;
    const bpt_cuda_batch next = bpt_cuda_input_batch(&net->input, run->next);
    bpt_cuda_feed_bring(net->feed, &next);
    return BPT_OK;
}

/* Nothing of a run that failed is left on its streams: what the host gives next lies where what is
 * there now is read. The feed's own stream brings batches one after another all the same. */
static void settle(const bpt_device_network *net) {
    bpt_cuda_drain(net->stream);
    bpt_cuda_hand_out_drain(net->hand_out);
}

bpt_status bpt__cuda_network_begin(bpt_device_network *net, bpt_device_work work,
                                   const bpt_device_run *run) {
    assert(!net->forward_only || work == BPT_DEVICE_EVALUATE);
    BPT_TRY(bpt_cuda_use(net->device->index));
    const bpt_status status = begin(net, work, run);
    if (status != BPT_OK) settle(net);
    return status;
}

static bpt_status await(bpt_device_network *net, bpt_device_work work) {
    if (net->hand_out && work == BPT_DEVICE_GRADIENT)
        BPT_TRY(bpt_cuda_hand_out_take(net->hand_out));
    return bpt_cuda_wait(net->stream);
}

bpt_status bpt__cuda_network_end(bpt_device_network *net, bpt_device_work work,
                                 bpt_device_outcome *outcome) {
    const bpt_cuda_outcome *found = net->host_outcome;
    *outcome = (bpt_device_outcome){0};
    const bpt_status status = await(net, work);
    if (status != BPT_OK) settle(net);
    BPT_TRY(status);
    outcome->result = (bpt_batch_result){found->loss_sum, found->n_correct, found->n_samples};
    outcome->updated =
        (bpt__cuda_phases(work) & BPT_CUDA_UPDATE) && !found->bad_loss && !found->bad_label;
    return check(net, work);
}

/* ---- vectors ---- */

static float *find_vector(const bpt_device_network *net, bpt_vector which) {
    float *const vectors[] = {
        [BPT_VECTOR_WEIGHTS] = net->vectors.weights,
        [BPT_VECTOR_GRADIENTS] = net->vectors.gradients,
        [BPT_VECTOR_STATE_0] = net->vectors.state[0],
        [BPT_VECTOR_STATE_1] = net->vectors.state[1],
    };
    assert(vectors[which]);
    return vectors[which];
}

/* The canonical values of the segments from one on. */
typedef struct {
    size_t first, n; /* segments */
    float *at;       /* on the GPU */
    size_t bytes;
} canonical_part;

static canonical_part part_from(const bpt_device_network *net, size_t first) {
    const bpt_segments *s = &net->model->segments;
    const size_t offset = s->items[first].offset;
    return (canonical_part){first, s->n - first, net->canonical + offset,
                            (s->n_elements - offset) * sizeof(float)};
}

static bpt_status get(bpt_device_network *net, bpt_vector which, size_t first, float *flat) {
    const canonical_part p = part_from(net, first);
    BPT_TRY(bpt_cuda_transfer_out(net->stream, net->transfer, p.first, p.n, find_vector(net, which),
                                  net->canonical));
    return bpt_cuda_copy(net->stream, flat, p.at, p.bytes);
}

static bpt_status set(bpt_device_network *net, bpt_vector which, size_t first, const float *flat) {
    const canonical_part p = part_from(net, first);
    BPT_TRY(bpt_cuda_copy(net->stream, p.at, flat, p.bytes));
    BPT_TRY(bpt_cuda_transfer_in(net->stream, net->transfer, p.first, p.n, net->canonical,
                                 find_vector(net, which)));
    return which == BPT_VECTOR_WEIGHTS ? bpt_cuda_update_copies(net->stream, net->update) : BPT_OK;
}

static bpt_status add_gradients(bpt_device_network *net, const float *flat) {
    const canonical_part p = part_from(net, bpt_model_frozen_segments(net->model));
    BPT_TRY(bpt_cuda_copy(net->stream, p.at, flat, p.bytes));
    return bpt_cuda_transfer_add(net->stream, net->transfer, p.first, p.n, net->canonical,
                                 net->vectors.gradients);
}

/* The caller's memory is not looked at any more, also where something failed. */
static bpt_status finish(const bpt_device_network *net, bpt_status status) {
    if (status == BPT_OK) return bpt_cuda_wait(net->stream);
    bpt_cuda_drain(net->stream);
    return status;
}

bpt_status bpt__cuda_network_get(bpt_device_network *net, bpt_vector which, size_t first,
                                 float *flat) {
    BPT_TRY(bpt_cuda_use(net->device->index));
    return finish(net, get(net, which, first, flat));
}

bpt_status bpt__cuda_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                 const float *flat) {
    BPT_TRY(bpt_cuda_use(net->device->index));
    return finish(net, set(net, which, first, flat));
}

bpt_status bpt__cuda_network_add_gradients(bpt_device_network *net, const float *flat) {
    BPT_TRY(bpt_cuda_use(net->device->index));
    return finish(net, add_gradients(net, flat));
}

bpt_status bpt__cuda_network_hand_out(bpt_device_network *net, const bpt_gradient_parts *parts) {
    bpt_cuda_hand_out *made;
    assert(!net->hand_out);
    BPT_TRY(bpt_cuda_use(net->device->index));
    BPT_TRY(bpt_cuda_hand_out_create(net, parts, &made));
    const bpt_status status =
        bpt_cuda_captured_cut(net->captured, BPT_DEVICE_GRADIENT, bpt_cuda_hand_out_pieces(made));
    if (status == BPT_OK)
        net->hand_out = made;
    else
        bpt_cuda_hand_out_free(made);
    return status;
}

/* ---- asking ---- */

void bpt__cuda_network_visit(const bpt_device_network *net, bpt_device_visit visit, void *context) {
    const unsigned phases = bpt__cuda_phases(BPT_DEVICE_TRAIN);
    for (size_t i = 0; i < net->n_tasks; i++)
        if ((net->tasks[i].phase & phases) && net->tasks[i].ns > 0)
            visit(context, net->tasks[i].label, net->tasks[i].kind, net->tasks[i].ns);
}

uint64_t bpt__cuda_network_products_ns(const bpt_device_network *net) {
    uint64_t ns = 0;
    for (size_t i = 0; i < net->n_convs; i++) ns += bpt_cuda_conv_ns(net->convs[i]);
    for (size_t i = 0; i < net->n_products; i++) ns += bpt_cuda_product_ns(net->products[i]);
    return ns;
}
