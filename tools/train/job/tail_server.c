#include "tools/train/job/tail_server.h"

#include "base/memory.h"
#include "base/thread.h"
#include "inner/network/network_border.h"

#include <pthread.h>
#include <string.h>

struct bpt_tail_server {
    bpt_tail_work work;
    pthread_t thread;
};

static bpt_status learn(const bpt_tail_work *k, uint32_t worker, const bpt_relay_note *note,
                        bpt_batch_result *result) {
    bpt_network_set_draw(k->tail, (bpt_draw){note->seed, note->step, note->first_sample});
    BPT_TRY(bpt_network_train(k->tail, k->values[worker], k->labels[worker], note->rate,
                              note->denominator, result));
    return bpt_border_log_update(k->log, worker, note->step, note->rate);
}

/* The gradient takes the place of the batch, so that the tail is free for the next. A worker whose
 * batch failed hears why, and ends the job: it is waiting, wherever the other threads are. */
static bpt_status serve(const bpt_tail_work *k, uint32_t worker, const bpt_relay_note *note) {
    const bpt_border border = bpt_network_border(k->tail);
    bpt_batch_result r;
    const bpt_status status = learn(k, worker, note, &r);
    if (status != BPT_OK) {
        (void)bpt_relay_refuse(k->relay, worker, k->values[worker]);
        return status;
    }
    memcpy(k->values[worker], border.gradient, border.bytes);
    const bpt_relay_result result = {r.loss_sum, r.n_correct, r.n_samples};
    return bpt_relay_answer(k->relay, worker, &result, k->values[worker]);
}

/* Ends at an error: who waits has it. */
static void *run(void *argument) {
    const bpt_tail_work *k = argument;
    uint32_t worker = 0;
    bpt_relay_note note;
    bpt_status status = BPT_OK;
    while (status == BPT_OK && worker != BPT_RELAY_NOBODY) {
        status = bpt_relay_next(k->relay, &worker, &note);
        if (status == BPT_OK && worker != BPT_RELAY_NOBODY) status = serve(k, worker, &note);
    }
    return NULL;
}

bpt_status bpt_tail_server_begin(const bpt_tail_work *work, bpt_tail_server **out) {
    bpt_tail_server *s = NULL;
    BPT_TRY(BPT_NEW("server of layers", 1, &s));
    s->work = *work;
    const int failed = bpt_thread_start(&s->thread, run, &s->work);
    if (failed) {
        bpt_free(s);
        return bpt_fail(BPT_EIO, "a thread for the layers placed here: %s", strerror(failed));
    }
    *out = s;
    return BPT_OK;
}

void bpt_tail_server_end(bpt_tail_server *s) {
    if (!s) return;
    bpt_relay_stop(s->work.relay);
    (void)pthread_join(s->thread, NULL);
    bpt_free(s);
}
