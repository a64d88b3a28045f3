/* Chunks are stored while the next ones are filled: half of the time that takes is waiting for the
 * disk. A thread for each chunk is started and ended in a thousandth of that time, and there is
 * nothing to guard: who waits joins it. LMDB wants a transaction to begin and to end on one
 * thread. */
#include "base/log.h"
#include "base/thread.h"
#include "storage/writer/writer_private.h"

#include <assert.h>

static void *store(void *arg) {
    bpt_writer *w = arg;
    if (bpt__writer_transact(w, bpt__writer_store_chunk) != BPT_OK) {
        bpt_error_get(&w->stored);
        return NULL;
    }
    w->n_stored += (uint32_t)w->storing.n;
    return NULL;
}

void bpt__writer_rest(bpt_writer *w) {
    if (w->is_storing) pthread_join(w->storer, NULL);
    w->is_storing = false;
}

bpt_status bpt__writer_wait(bpt_writer *w) {
    bpt__writer_rest(w);
    return w->stored.status == BPT_OK ? BPT_OK : bpt_error_put(&w->stored);
}

bpt_status bpt__writer_hand_over(bpt_writer *w) {
    assert(w->n_open == 0);
    BPT_TRY(bpt__writer_wait(w));
    if (w->filling.n == 0 && w->filling.notes.n == 0) return BPT_OK;
    const bpt__chunk filled = w->filling;
    w->filling = w->storing;
    w->storing = filled;
    w->filling.n = 0;
    w->filling.first = filled.first + (uint32_t)filled.n;
    bpt__notes_clear(&w->filling.notes);
    w->is_storing = bpt_thread_start(&w->storer, store, w) == 0;
    if (w->is_storing) return BPT_OK;
    bpt_debug("no thread could be started: a chunk is stored while nothing is filled");
    store(w);
    return BPT_OK;
}
