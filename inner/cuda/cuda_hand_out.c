#include "inner/cuda/cuda_hand_out.h"

#include "base/log.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>
#include <string.h>

typedef struct cut_piece {
    size_t end;                       /* of its tasks */
    uint32_t first_part, n_parts;     /* that are whole behind it */
    size_t first_segment, n_segments; /* of these */
    size_t begin, n;                  /* floats of these, among those that learn */
    cudaEvent_t computed, copied;
} cut_piece;

struct bpt_cuda_hand_out {
    bpt_gradient_parts parts;  /* .begin is not kept */
    size_t frozen;             /* floats in canonical order before those of parts */
    float *landing;            /* what the GPU writes: parts.flat, or the next */
    float *landing_beside;     /* NULL: the first */
    bool pinned;               /* parts.flat is */
    bpt_cuda_outcome *outcome; /* likewise of the host: of the loss */
    cut_piece *pieces;         /* shape [n_pieces] */
    size_t n_pieces;
    bpt_cuda_stream stream;
};

/* ---- pieces ---- */

/* @return the layer whose segments begin with @p segment, or have it */
static size_t layer_of(const bpt_model *model, size_t segment) {
    size_t i = 0;
    while (segment >= model->layers[i].first_segment + model->layers[i].n_segments) i++;
    return i;
}

/* @return the first segment from @p at on */
static size_t segment_at(const bpt_segments *segments, size_t at) {
    size_t s = 0;
    while (s < segments->n && segments->items[s].offset < at) s++;
    return s;
}

/* Layers compute their gradients from the last to the first, and segments lie from the first to the
 * last: a part is whole when the layer of its first segment has ended. */
static void cut(bpt_cuda_hand_out *h, const bpt_device_network *net, const size_t *begin) {
    const bpt_segments *segments = &net->model->segments;
    size_t end_segment = segments->n, end = begin[h->parts.n];
    for (uint32_t part = h->parts.n; part-- > 0;) {
        const size_t first = segment_at(segments, h->frozen + begin[part]);
        const size_t tasks = net->backward_end[layer_of(net->model, first)];
        cut_piece *p = h->n_pieces > 0 ? &h->pieces[h->n_pieces - 1] : NULL;
        if (!p || p->end != tasks) {
            p = &h->pieces[h->n_pieces++];
            *p = (cut_piece){.end = tasks};
        }
        p->first_part = part;
        p->n_parts++;
        p->n_segments += end_segment - first;
        p->first_segment = end_segment = first;
        p->n += end - begin[part];
        p->begin = end = begin[part];
    }
    h->pieces[h->n_pieces++] = (cut_piece){.end = net->n_tasks}; /* what is behind the gradients */
}

size_t bpt_cuda_hand_out_pieces(const bpt_cuda_hand_out *h) {
    return h->n_pieces;
}

size_t bpt_cuda_hand_out_end(const bpt_cuda_hand_out *h, size_t piece) {
    return h->pieces[piece].end;
}

/* ---- life ---- */

static bpt_status create_events(bpt_cuda_hand_out *h) {
    const unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
    for (size_t i = 0; i < h->n_pieces; i++) {
        BPT_CUDA_TRY(cudaEventCreateWithFlags(&h->pieces[i].computed, cudaEventDisableTiming));
        BPT_CUDA_TRY(cudaEventCreateWithFlags(&h->pieces[i].copied, flags));
    }
    return BPT_OK;
}

/* A copy to memory that is not pinned holds up whoever puts it on the stream until it has ended:
 * the last way where no more can be pinned. */
static void find_landing(bpt_cuda_hand_out *h, size_t bytes) {
    h->pinned = bpt_cuda_pin(h->parts.flat, bytes);
    h->landing = h->parts.flat;
    if (h->pinned) return;
    if (bpt_cuda_host_allocate(bytes, (void **)&h->landing_beside) == BPT_OK)
        h->landing = h->landing_beside;
    else
        bpt_debug("gradients wait for their copies: %s", bpt_error_last()->text);
}

static bpt_status create(bpt_cuda_hand_out *h, const bpt_device_network *net, const size_t *begin) {
    BPT_TRY(BPT_NEW("pieces of a backward pass", (size_t)h->parts.n + 1, &h->pieces));
    cut(h, net, begin);
    BPT_TRY(create_events(h));
    BPT_TRY(bpt_cuda_stream_create_first(&h->stream));
    BPT_TRY(bpt_cuda_host_allocate(sizeof *h->outcome, (void **)&h->outcome));
    find_landing(h, begin[h->parts.n] * sizeof *h->parts.flat);
    return BPT_OK;
}

bpt_status bpt_cuda_hand_out_create(const bpt_device_network *net, const bpt_gradient_parts *parts,
                                    bpt_cuda_hand_out **out) {
    bpt_cuda_hand_out *h;
    BPT_TRY(BPT_NEW("gradients on their way", 1, &h));
    h->parts = *parts;
    h->parts.begin = NULL;
    h->frozen = bpt_model_frozen_elements(net->model);
    const bpt_status status = create(h, net, parts->begin);
    if (status == BPT_OK)
        *out = h;
    else
        bpt_cuda_hand_out_free(h);
    return status;
}

void bpt_cuda_hand_out_free(bpt_cuda_hand_out *h) {
    if (!h) return;
    bpt_cuda_hand_out_drain(h);
    for (size_t i = 0; i < h->n_pieces; i++) {
        if (h->pieces[i].computed) cudaEventDestroy(h->pieces[i].computed);
        if (h->pieces[i].copied) cudaEventDestroy(h->pieces[i].copied);
    }
    if (h->pinned) bpt_cuda_unpin(h->parts.flat);
    bpt_cuda_host_free(h->landing_beside);
    bpt_cuda_host_free(h->outcome);
    bpt_cuda_stream_free(h->stream);
    bpt_free(h->pieces);
    bpt_free(h);
}

/* ---- runs ---- */

bpt_status bpt_cuda_hand_out_copy(const bpt_device_network *net, bpt_cuda_hand_out *h,
                                  size_t piece) {
    const cut_piece *p = &h->pieces[piece];
    if (p->n_parts == 0) return BPT_OK;
    BPT_CUDA_TRY(cudaEventRecord(p->computed, net->stream));
    BPT_CUDA_TRY(cudaStreamWaitEvent(h->stream, p->computed, 0));
    if (piece == 0) BPT_TRY(bpt_cuda_copy(h->stream, h->outcome, net->outcome, sizeof *h->outcome));
    BPT_TRY(bpt_cuda_transfer_out(h->stream, net->transfer, p->first_segment, p->n_segments,
                                  net->vectors.gradients, net->canonical));
    BPT_TRY(bpt_cuda_copy(h->stream, h->landing + p->begin, net->canonical + h->frozen + p->begin,
                          p->n * sizeof *h->landing));
    BPT_CUDA_TRY(cudaEventRecord(p->copied, h->stream));
    return BPT_OK;
}

/* The loss comes before all gradients, and says whether they are worth anything. */
static bool is_good(const bpt_cuda_hand_out *h) {
    return !h->outcome->bad_loss && !h->outcome->bad_label;
}

static void give(const bpt_cuda_hand_out *h, const cut_piece *p) {
    if (h->landing_beside)
        memcpy(h->parts.flat + p->begin, h->landing_beside + p->begin, p->n * sizeof *h->landing);
    for (uint32_t i = p->n_parts; i-- > 0;) h->parts.take(h->parts.context, p->first_part + i);
}

bpt_status bpt_cuda_hand_out_take(bpt_cuda_hand_out *h) {
    for (size_t i = 0; i < h->n_pieces; i++) {
        const cut_piece *p = &h->pieces[i];
        if (p->n_parts == 0) continue;
        BPT_CUDA_TRY(cudaEventSynchronize(p->copied));
        if (is_good(h)) give(h, p);
    }
    return BPT_OK;
}

void bpt_cuda_hand_out_drain(bpt_cuda_hand_out *h) {
    if (h) bpt_cuda_drain(h->stream);
}
