#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "outer/comm/watch.h"
#include "storage/loader/loader.h"
#include "tools/plan/probe_parts.h"

#include <time.h>

typedef struct {
    const bpt_probe *p;
    bpt_loader *loader;
    uint32_t *indices; /* of a batch, shape [batch] */
    bpt_random order;
} reader;

static bpt_status open_reader(const bpt_probe *p, reader *r) {
    const bpt_probe_subject *s = p->subject;
    const bpt_loader_options options = {
        .batch = (uint32_t)s->batch,
        .n_threads = 1,
        .depth = 1,
        .as_images = bpt_device_takes_images(p->device),
        .mean = s->split->mean,
        .std = s->split->std,
        .seed = BPT__PROBE_SEED,
    };
    *r = (reader){.p = p};
    r->order = bpt_random_stream(BPT__PROBE_SEED, BPT_PURPOSE_SYNTHETIC, bpt_comm_rank(p->comm));
    BPT_TRY(BPT_NEW("indices of a batch", (size_t)s->batch, &r->indices));
    return bpt_loader_create(s->dataset, s->split, &options, &r->loader);
}

static void close_reader(reader *r) {
    bpt_loader_destroy(r->loader);
    bpt_free(r->indices);
}

/* Images in any order, as training takes them; none are read ahead. */
static bpt_status read_batch(reader *r) {
    const bpt_probe_subject *s = r->p->subject;
    bpt_batch batch;
    for (int64_t i = 0; i < s->batch; i++)
        r->indices[i] = bpt_random_below(&r->order, s->split->count);
    BPT_TRY(bpt_loader_request(r->loader, r->indices, NULL, (uint32_t)s->batch));
    BPT_TRY(bpt_loader_next(r->loader, &batch));
    bpt_loader_release(r->loader, &batch);
    return BPT_OK;
}

static double used_s(clockid_t clock) {
    struct timespec used = {0};
    (void)clock_gettime(clock, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* The thread that reads is the process's only one beside these two. */
static double reading_s(const bpt_comm *comm) {
    return used_s(CLOCK_PROCESS_CPUTIME_ID) - used_s(CLOCK_THREAD_CPUTIME_ID) -
           bpt_comm_cpu_seconds(comm);
}

/* The first batch touches memory for the first time. */
static bpt_status time_batches(reader *r, double *s_per_image) {
    const bpt_probe_subject *s = r->p->subject;
    BPT_TRY(read_batch(r));
    const double before_s = reading_s(r->p->comm);
    const uint64_t start_ns = bpt_clock_ns();
    uint64_t n = 0;
    for (; n == 0 || bpt_clock_seconds_since(start_ns) < s->seconds; n++) BPT_TRY(read_batch(r));
    const double read_s = reading_s(r->p->comm) - before_s;
    *s_per_image = read_s > 0 ? read_s / (double)n / (double)s->batch : 0;
    return BPT_OK;
}

bpt_status bpt__probe_load(const bpt_probe *p, bpt_node *node) {
    reader r = {0};
    if (!p->subject->dataset) return BPT_OK;
    bpt_comm_operation_begin(p->comm, "data from the loader");
    bpt_status status = open_reader(p, &r);
    if (status == BPT_OK) status = time_batches(&r, &node->load_s_per_image);
    close_reader(&r);
    bpt_comm_operation_end(p->comm);
    return bpt_comm_agree(p->comm, status);
}
