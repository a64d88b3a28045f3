#include "base/clock.h"
#include "base/log.h"
#include "tools/plan/probe_parts.h"
#include "tools/spread.h"
#include "tools/synthetic.h"

/* Steps that do not count: the first touches memory for the first time, the second tells what tasks
 * take; of a device the second is run part by part, and the third is captured. A third of cores
 * settles caches and clock rates, where steps are so short that it matters. */
enum { N_WARM = 2, N_WARM_OF_SHORT = 3 };
static const double settled_s = 0.5;

/* What is measured is the median of chunks. A host under a quota of processor time computes in
 * bursts, of some hundredths of a second: a chunk is long beside these. */
enum { MOST_CHUNKS = 8, MOST_COPIES = 9, MOST_SIZES = 4 };
static const double least_chunk_s = 0.1;
_Static_assert((int)MOST_SIZES <= (int)BPT_NODE_STEPS, "a node has room for all sizes");

/* A network whose steps have so many samples. */
typedef struct {
    const bpt_probe *p;
    int64_t samples;
    bpt_network *network;
    bpt_synthetic batch;
    uint64_t n_steps;
} sized;

static bpt_status open_sized(const bpt_probe *p, int64_t samples, sized *s) {
    const bpt_probe_subject *subject = p->subject;
    *s = (sized){.p = p, .samples = samples};
    BPT_TRY(bpt_synthetic_make(subject->model, samples, BPT__PROBE_SEED,
                               bpt_device_takes_images(p->device), &s->batch));
    BPT_TRY(bpt_network_create_on(p->device, subject->model, samples,
                                  bpt_precision_type(subject->precision, p->device),
                                  subject->learning, p->pool, &s->network));
    return bpt_network_set(s->network, BPT_VECTOR_WEIGHTS, p->flat);
}

static void close_sized(sized *s) {
    bpt_network_free(s->network);
    bpt_synthetic_release(&s->batch);
}

/* At a rate of 0: the arithmetic of training, without weights that come to no number.
 * @param last else the batch comes again: a device has it brought meanwhile, as in training */
static bpt_status step(sized *s, bool last) {
    bpt_batch_result result;
    bpt_network_set_draw(s->network, (bpt_draw){BPT__PROBE_SEED, s->n_steps++, 0});
    if (s->p->device) bpt_network_set_next(s->network, last ? NULL : s->batch.input);
    return bpt_network_train(s->network, s->batch.input, s->batch.labels, 0, (float)s->samples,
                             &result);
}

static bpt_status warm_up(sized *s) {
    const uint64_t start_ns = bpt_clock_ns();
    for (int i = 0; i < N_WARM_OF_SHORT; i++) {
        const bool settled = bpt_clock_seconds_since(start_ns) >= settled_s;
        if (i >= N_WARM && settled && !s->p->device) break;
        BPT_TRY(step(s, false));
    }
    return BPT_OK;
}

static bpt_status begin(const bpt_probe *p, int64_t samples, sized *s) {
    BPT_TRY(open_sized(p, samples, s));
    return warm_up(s);
}

/* @param[out] step_s seconds of a step */
static bpt_status time_chunk(sized *s, double least_s, double *step_s) {
    const uint64_t start_ns = bpt_clock_ns();
    double seconds = 0;
    uint64_t n = 0;
    for (; n == 0 || seconds < least_s; n++) {
        BPT_TRY(step(s, false));
        seconds = bpt_clock_seconds_since(start_ns);
    }
    *step_s = seconds / (double)n;
    return BPT_OK;
}

static bpt_status time_steps(sized *s, double *step_s) {
    const double seconds = s->p->subject->seconds, part_s = seconds / MOST_CHUNKS;
    const double chunk_s = part_s > least_chunk_s ? part_s : least_chunk_s;
    const uint64_t start_ns = bpt_clock_ns();
    double of_chunk[MOST_CHUNKS];
    size_t n = 0;
    for (; n == 0 || (n < MOST_CHUNKS && bpt_clock_seconds_since(start_ns) < seconds); n++)
        BPT_TRY(time_chunk(s, chunk_s, &of_chunk[n]));
    *step_s = bpt_spread_of(of_chunk, n).median;
    return s->p->device ? step(s, true) : BPT_OK; /* nothing is brought from it any more */
}

static bpt_status copy(const sized *s) {
    BPT_TRY(bpt_network_get(s->network, BPT_VECTOR_WEIGHTS, s->p->flat));
    return bpt_network_set(s->network, BPT_VECTOR_WEIGHTS, s->p->flat);
}

static bpt_status time_copies(const sized *s, double *copy_s) {
    const uint64_t start_ns = bpt_clock_ns();
    double of_copy[MOST_COPIES];
    size_t n = 0;
    BPT_TRY(copy(s)); /* touches memory for the first time */
    for (;
         n == 0 || (n < MOST_COPIES && bpt_clock_seconds_since(start_ns) < s->p->subject->seconds);
         n++) {
        const uint64_t copy_ns = bpt_clock_ns();
        BPT_TRY(copy(s));
        of_copy[n] = bpt_clock_seconds_since(copy_ns);
    }
    *copy_s = bpt_spread_of(of_copy, n).median;
    return BPT_OK;
}

/* Ranks begin together: agreeing is waiting for all.
 * @param copy_s NULL: copies are not measured */
static bpt_status measure_size(const bpt_probe *p, bpt_step_time *time, double *copy_s) {
    sized s = {0};
    bpt_info("measuring steps of %g sample%s", time->samples, time->samples == 1 ? "" : "s");
    bpt_status status = bpt_comm_agree(p->comm, begin(p, (int64_t)time->samples, &s));
    if (status == BPT_OK) status = bpt_comm_agree(p->comm, time_steps(&s, &time->seconds));
    if (status == BPT_OK && copy_s) status = bpt_comm_agree(p->comm, time_copies(&s, copy_s));
    close_sized(&s);
    return status;
}

/* Lists the sizes, the least first. */
static bpt_status list_sizes(const bpt_probe_subject *s, bpt_node *node) {
    const bpt_layer *layer;
    const int64_t least = bpt_model_least_batch(s->model, &layer);
    uint32_t n = 0;
    if (s->batch < least) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE,
                     "batch norm %s has one value a channel where a step has one sample: nothing "
                     "passes it",
                     layer->name);
        bpt_hint("raise --batch-size");
        return status;
    }
    while (n < MOST_SIZES && s->batch >> n >= least) n++;
    for (uint32_t i = 0; i < n; i++) node->steps[i].samples = (double)(s->batch >> (n - 1 - i));
    node->n_steps = n;
    return BPT_OK;
}

/* Whatever disturbs a measurement adds to it, so where fewer samples have taken longer they can
 * have taken no more than the others. */
static void keep_order(bpt_node *node) {
    for (uint32_t i = node->n_steps - 1; i-- > 0;)
        if (node->steps[i].seconds > node->steps[i + 1].seconds)
            node->steps[i].seconds = node->steps[i + 1].seconds;
}

/* The largest comes first: if there is not enough memory, that is soon known. */
bpt_status bpt__probe_steps(const bpt_probe *p, bpt_node *node) {
    BPT_TRY(bpt_comm_agree(p->comm, list_sizes(p->subject, node)));
    const uint32_t last = node->n_steps - 1;
    for (uint32_t i = node->n_steps; i-- > 0;)
        BPT_TRY(measure_size(p, &node->steps[i], i == last ? &node->copy_s : NULL));
    keep_order(node);
    return BPT_OK;
}
