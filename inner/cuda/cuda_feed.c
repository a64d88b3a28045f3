#include "inner/cuda/cuda_feed.h"

#include "base/log.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>
#include <string.h>

enum { PIECE_BYTES = 4 << 20 }; /* is copied to the GPU while the next is copied to pinned memory */

/* One side is read by the step that runs, the other is filled. */
struct bpt_cuda_feed {
    size_t bytes;
    char *pinned[2];
    char *device[2];
    cudaEvent_t there[2];   /* it has arrived */
    const void *brought[2]; /* which batch; NULL: none */
    int side;               /* that was taken last */
    bpt_cuda_stream stream;
};

size_t bpt_cuda_feed_bytes(size_t bytes) {
    return 2 * bytes;
}

static bpt_status allocate(bpt_cuda_feed *f) {
    for (int i = 0; i < 2; i++) {
        BPT_TRY(bpt_cuda_host_allocate(f->bytes, (void **)&f->pinned[i]));
        BPT_TRY(bpt_cuda_allocate(f->bytes, (void **)&f->device[i]));
        BPT_CUDA_TRY(cudaEventCreateWithFlags(&f->there[i], cudaEventDisableTiming));
    }
    return bpt_cuda_stream_create(&f->stream);
}

bpt_status bpt_cuda_feed_create(size_t bytes, bpt_cuda_feed **feed) {
    bpt_cuda_feed *f;
    BPT_TRY(BPT_NEW("feed of a GPU", 1, &f));
    f->bytes = bytes;
    const bpt_status status = allocate(f);
    if (status == BPT_OK)
        *feed = f;
    else
        bpt_cuda_feed_free(f);
    return status;
}

void bpt_cuda_feed_free(bpt_cuda_feed *f) {
    if (!f) return;
    bpt_cuda_drain(f->stream);
    for (int i = 0; i < 2; i++) {
        if (f->there[i]) cudaEventDestroy(f->there[i]);
        bpt_cuda_free(f->device[i]);
        bpt_cuda_host_free(f->pinned[i]);
    }
    bpt_cuda_stream_free(f->stream);
    bpt_free(f);
}

/* What lies between spans goes along. */
static bpt_status send(bpt_cuda_feed *f, int side, size_t begin, size_t end) {
    return bpt_cuda_copy(f->stream, f->device[side] + begin, f->pinned[side] + begin, end - begin);
}

/* What was on its way to this side is overwritten, here or by the later copy, which is of the same
 * stream. */
static bpt_status bring(bpt_cuda_feed *f, const bpt_cuda_batch *batch, int side) {
    size_t sent = 0, end = 0;
    f->brought[side] = NULL; /* until all of it is on its way */
    for (int i = 0; i < batch->n_spans; i++) {
        const bpt_cuda_span *span = &batch->spans[i];
        for (size_t done = 0, n; done < span->bytes; done += n) {
            n = span->bytes - done < PIECE_BYTES ? span->bytes - done : PIECE_BYTES;
            memcpy(f->pinned[side] + span->at + done, (const char *)span->from + done, n);
            end = span->at + done + n;
            if (end - sent < PIECE_BYTES) continue;
            BPT_TRY(send(f, side, sent, end));
            sent = end;
        }
    }
    if (end > sent) BPT_TRY(send(f, side, sent, end));
    BPT_CUDA_TRY(cudaEventRecord(f->there[side], f->stream));
    f->brought[side] = batch->given;
    return BPT_OK;
}

bpt_status bpt_cuda_feed_take(bpt_cuda_feed *f, const bpt_cuda_batch *batch, bpt_cuda_stream stream,
                              const void **device) {
    const int side = 1 - f->side;
    if (f->brought[side] != batch->given) BPT_TRY(bring(f, batch, side));
    f->brought[side] = NULL; /* what is at the same place by then may be another batch */
    BPT_CUDA_TRY(cudaStreamWaitEvent(stream, f->there[side], 0));
    f->side = side;
    *device = f->device[side];
    return BPT_OK;
}

void bpt_cuda_feed_bring(bpt_cuda_feed *f, const bpt_cuda_batch *batch) {
    if (bring(f, batch, 1 - f->side) != BPT_OK)
        bpt_debug("a batch goes to the GPU late: %s", bpt_error_last()->text);
}
