#include "tools/train/data/feed.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tools/train/data/held_out.h"

struct bpt_feed {
    bpt_sampler *sampler;
    bpt_loader *loader;
    const uint32_t *records; /* borrowed; NULL: none are held out */
    uint64_t n_held;
    uint32_t batch_size, depth;
    uint32_t *indices;  /* shape [batch_size] */
    uint32_t *passes;   /* shape [batch_size] */
    bool drawn;         /* these are the next batch, which is not requested yet */
    bpt_feed_gate gate; /* .look is NULL where there is none */
    uint64_t gate_wait_ns;
    bpt_batch batch;
    bool holds_batch;
    /* States of the sampler after each batch that is requested and not yet taken: a ring. */
    bpt_sampler_state *after; /* shape [depth] */
    uint32_t first, n_ahead;
    bpt_sampler_state taken; /* after the last batch taken */
};

bpt_loader_options bpt_feed_options(const bpt_train_options *o, const bpt_split *train,
                                    uint32_t batch, bool as_images) {
    return (bpt_loader_options){
        .batch = batch,
        .as_images = as_images,
        .n_threads = (uint32_t)o->loader_threads,
        .depth = (uint32_t)o->prefetch,
        .mean = train->mean,
        .std = train->std,
        .augment = bpt_train_augment(o),
        .seed = (uint64_t)o->seed,
    };
}

bpt_status bpt_feed_create(const bpt_dataset *dataset, const bpt_split *split,
                           const bpt_loader_options *options, const uint32_t *records,
                           uint64_t n_held, bpt_sampler *sampler, bpt_feed **out) {
    bpt_feed *f = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("feed", 1, &f), err_sampler);
    f->sampler = sampler;
    f->records = records;
    f->n_held = n_held;
    f->batch_size = options->batch;
    f->depth = options->depth;
    f->taken = bpt_sampler_state_get(sampler);
    BPT_TRY_GOTO(status, BPT_NEW("feed indices", f->batch_size, &f->indices), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("feed passes", f->batch_size, &f->passes), err_free);
    BPT_TRY_GOTO(status, BPT_NEW("feed states", f->depth, &f->after), err_free);
    bpt_loader_options loader = *options;
    bpt_held_out_skip_partners(records, n_held, split, &loader);
    BPT_TRY_GOTO(status, bpt_loader_create(dataset, split, &loader, &f->loader), err_free);
    *out = f;
    return BPT_OK;
err_free:
    bpt_feed_free(f);
    return status;
err_sampler:
    bpt_sampler_free(sampler);
    return status;
}

void bpt_feed_free(bpt_feed *f) {
    if (!f) return;
    bpt_loader_destroy(f->loader);
    bpt_sampler_free(f->sampler);
    bpt_free(f->after);
    bpt_free(f->passes);
    bpt_free(f->indices);
    bpt_free(f);
}

void bpt_feed_set_gate(bpt_feed *f, const bpt_feed_gate *gate) {
    f->gate = *gate;
}

void bpt_feed_admit(bpt_feed *f, uint32_t rounds) {
    bpt_sampler_admit(f->sampler, rounds);
}

/* Whether the batch that is drawn can be read: where it is the only one, it waits for it. */
static bpt_status look(bpt_feed *f, bool *here) {
    *here = true;
    if (!f->gate.look) return BPT_OK;
    const uint64_t start_ns = bpt_clock_ns();
    const bool wait = f->n_ahead == 0;
    BPT_TRY(f->gate.look(f->gate.arg, f->indices, f->batch_size, wait, here));
    if (wait) f->gate_wait_ns += bpt_clock_ns() - start_ns;
    return BPT_OK;
}

static bpt_status draw(bpt_feed *f) {
    BPT_TRY(bpt_sampler_next(f->sampler, f->batch_size, f->indices, f->passes));
    bpt_held_out_skip(f->records, f->n_held, f->indices, f->batch_size);
    return BPT_OK;
}

static bpt_status request_ahead(bpt_feed *f) {
    while (bpt_loader_room(f->loader) > 0) {
        bool here;
        if (!f->drawn) BPT_TRY(draw(f));
        f->drawn = true;
        BPT_TRY(look(f, &here));
        if (!here) return BPT_OK;
        BPT_TRY(bpt_loader_request(f->loader, f->indices, f->passes, f->batch_size));
        f->drawn = false;
        f->after[(f->first + f->n_ahead++) % f->depth] = bpt_sampler_state_get(f->sampler);
    }
    return BPT_OK;
}

bpt_status bpt_feed_next(bpt_feed *f, bpt_batch *batch) {
    if (f->holds_batch) bpt_loader_release(f->loader, &f->batch);
    f->holds_batch = false;
    BPT_TRY(request_ahead(f));
    BPT_TRY(bpt_loader_next(f->loader, &f->batch));
    f->holds_batch = true;
    f->taken = f->after[f->first];
    f->first = (f->first + 1) % f->depth;
    f->n_ahead--;
    *batch = f->batch;
    return BPT_OK;
}

const void *bpt_feed_peek(bpt_feed *f) {
    return bpt_loader_peek(f->loader);
}

bpt_sampler_state bpt_feed_state(const bpt_feed *f) {
    const bpt_sampler_state ahead = bpt_sampler_state_get(f->sampler);
    bpt_sampler_state state = f->taken;
    /* A pass that has begun ahead covers what was known then, not what is known by now. */
    const uint64_t next = state.rounds ? state.pass + 1 : state.pass;
    if (ahead.rounds && ahead.pass == next) state.next_rounds = ahead.rounds;
    return state;
}

uint64_t bpt_feed_wait_ns(const bpt_feed *f) {
    return bpt_loader_wait_ns(f->loader) + f->gate_wait_ns;
}
