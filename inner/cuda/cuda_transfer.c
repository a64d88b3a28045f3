#include "inner/cuda/cuda_transfer.h"

#include "base/integers.h"
#include "base/memory.h"
#include "inner/cuda/cuda_transfer_kernels.h"

static int64_t ranges_of(const bpt_cuda_order *o) {
    return bpt_quotient_up(o->count, BPT__TRANSFER_RANGE);
}

static void cut(const bpt_cuda_order *orders, size_t n, bpt__transfer_range *ranges) {
    for (size_t s = 0; s < n; s++)
        for (int64_t first = 0; first < orders[s].count; first += BPT__TRANSFER_RANGE)
            *ranges++ = (bpt__transfer_range){
                .first = first,
                .count = (int32_t)bpt_smaller(orders[s].count - first, BPT__TRANSFER_RANGE),
                .segment = (int32_t)s,
            };
}

static bpt_status make_tables(bpt_cuda_transfer *t, const bpt_cuda_order *orders, size_t n) {
    bpt__transfer_range *ranges;
    BPT_TRY(BPT_NEW("first ranges", n + 1, &t->first));
    for (size_t s = 0; s < n; s++) t->first[s + 1] = t->first[s] + (int32_t)ranges_of(&orders[s]);
    t->n_ranges = t->first[n];
    BPT_TRY(BPT_NEW("ranges of vectors", (size_t)t->n_ranges, &ranges));
    cut(orders, n, ranges);
    bpt_status status =
        bpt_cuda_upload(ranges, (size_t)t->n_ranges * sizeof *ranges, (void **)&t->ranges);
    if (status == BPT_OK) status = bpt_cuda_upload(orders, n * sizeof *orders, (void **)&t->orders);
    bpt_free(ranges);
    return status;
}

bpt_status bpt_cuda_transfer_create(const bpt_cuda_order *orders, size_t n,
                                    bpt_cuda_transfer **transfer) {
    bpt_cuda_transfer *t;
    BPT_TRY(BPT_NEW("transfer", 1, &t));
    const bpt_status status = make_tables(t, orders, n);
    if (status == BPT_OK)
        *transfer = t;
    else
        bpt_cuda_transfer_free(t);
    return status;
}

void bpt_cuda_transfer_free(bpt_cuda_transfer *transfer) {
    if (!transfer) return;
    bpt_cuda_free(transfer->orders);
    bpt_cuda_free(transfer->ranges);
    bpt_free(transfer->first);
    bpt_free(transfer);
}
