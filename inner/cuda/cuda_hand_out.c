#include "inner/cuda/cuda_hand_out.h"

#include "base/log.h"
#include "base/memory.h"

#include <cuda_runtime_api.h>

typedef struct cut_piece {
    size_t end;                       /* of its tasks */
    uint32_t first_part, n_parts;     /* that are whole behind it */
    size_t first_segment, n_segments; /* of these */
    size_t begin, n;                  /* floats of these, in canonical order */
    cudaEvent_t computed, copied;
} cut_piece;

struct bpt_cuda_hand_out {
    bpt_gradient_parts parts; /* .begin is not kept */
    cut_piece *pieces;        /* shape [n_pieces] */
    size_t n_pieces;
    bpt_cuda_stream stream;
    bool pinned; /* parts.flat, by this */
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
        const size_t first = segment_at(segments, begin[part]);
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
    h->pieces[h->n_pieces - 1].end = net->n_tasks;
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

/* Where the system does not let it be, copies are slower, and who puts them on the stream waits. */
static void pin(bpt_cuda_hand_out *h, size_t bytes) {
    h->pinned = cudaHostRegister(h->parts.flat, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (h->pinned) return;
    (void)cudaGetLastError();
    bpt_debug("gradients are handed out through memory that the GPU cannot write by itself");
}

static bpt_status create(bpt_cuda_hand_out *h, const bpt_device_network *net, const size_t *begin) {
    BPT_TRY(BPT_NEW("pieces of a backward pass", h->parts.n, &h->pieces));
    cut(h, net, begin);
    BPT_TRY(create_events(h));
    BPT_TRY(bpt_cuda_stream_create(&h->stream));
    pin(h, begin[h->parts.n] * sizeof *h->parts.flat);
    return BPT_OK;
}

bpt_status bpt_cuda_hand_out_create(const bpt_device_network *net, const bpt_gradient_parts *parts,
                                    bpt_cuda_hand_out **out) {
    bpt_cuda_hand_out *h;
    BPT_TRY(BPT_NEW("gradients on their way", 1, &h));
    h->parts = *parts;
    h->parts.begin = NULL;
    const bpt_status status = create(h, net, parts->begin);
    if (status == BPT_OK)
        *out = h;
    else
        bpt_cuda_hand_out_free(h);
    return status;
}

void bpt_cuda_hand_out_free(bpt_cuda_hand_out *h) {
    if (!h) return;
    bpt_cuda_hand_out_wait(h);
    for (size_t i = 0; i < h->n_pieces; i++) {
        if (h->pieces[i].computed) cudaEventDestroy(h->pieces[i].computed);
        if (h->pieces[i].copied) cudaEventDestroy(h->pieces[i].copied);
    }
    if (h->pinned) cudaHostUnregister(h->parts.flat);
    bpt_cuda_stream_free(h->stream);
    bpt_free(h->pieces);
    bpt_free(h);
}

/* ---- runs ---- */

bpt_status bpt_cuda_hand_out_copy(const bpt_device_network *net, bpt_cuda_hand_out *h,
                                  size_t number) {
    const cut_piece *p = &h->pieces[number];
    BPT_CUDA_TRY(cudaEventRecord(p->computed, net->stream));
    BPT_CUDA_TRY(cudaStreamWaitEvent(h->stream, p->computed, 0));
    BPT_TRY(bpt_cuda_transfer_out(h->stream, net->transfer, p->first_segment, p->n_segments,
                                  net->vectors.gradients, net->canonical));
    BPT_TRY(bpt_cuda_copy(h->stream, h->parts.flat + p->begin, net->canonical + p->begin,
                          p->n * sizeof *h->parts.flat));
    BPT_CUDA_TRY(cudaEventRecord(p->copied, h->stream));
    return BPT_OK;
}

bpt_status bpt_cuda_hand_out_take(bpt_cuda_hand_out *h) {
    for (size_t i = 0; i < h->n_pieces; i++) {
        const cut_piece *p = &h->pieces[i];
        BPT_CUDA_TRY(cudaEventSynchronize(p->copied));
        for (uint32_t k = p->n_parts; k-- > 0;) h->parts.take(h->parts.context, p->first_part + k);
    }
    return BPT_OK;
}

void bpt_cuda_hand_out_wait(bpt_cuda_hand_out *h) {
    if (h && h->stream) (void)bpt_cuda_wait(h->stream);
}
