/* What the system is told of records before they are read: bpt_dataset_expect(). */
#include "storage/dataset/dataset_private.h"

#include <sys/mman.h>

#include <unistd.h>

/* All pages that the bytes lie in. What cannot be announced is read when it is used. */
static void announce(const uint8_t *data, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)data / page * page;
    (void)madvise((void *)from, (uintptr_t)data + size - from, MADV_WILLNEED);
}

void bpt_dataset_set_memory(bpt_dataset *d, uint64_t memory_bytes) {
    uint64_t bytes = 0;
    for (size_t s = 0; !d->parts && s < d->info->n_splits; s++)
        for (uint32_t v = 0; v < d->records[s].n_values; v++) bytes += d->records[s].values[v].size;
    d->outgrows_memory = bytes > memory_bytes / 2;
}

/* Of a value that was read before its place and size are known to be right. */
static void expect_again(const bpt_dataset *d, const bpt_split *split, uint32_t v, uint32_t k) {
    const bpt__stored_value value = d->records[split->number].values[v];
    const bpt__value_place place = bpt__dataset_place(d, split, v);
    if (d->info->encoded) {
        announce(value.data, value.size);
        return;
    }
    announce(value.data, BPT__VALUE_HEADER + place.n * sizeof(uint16_t));
    announce(bpt__value_pixels(value.data, d->record_bytes, place.n, k), d->record_bytes);
}

void bpt_dataset_expect(const bpt_dataset *d, const bpt_split *split, const uint32_t *indices,
                        uint32_t n) {
    if (d->parts) return;
    const bpt__records *r = &d->records[split->number];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k;
        const uint32_t v = bpt__dataset_value(d, split, indices[i], &k);
        if (!atomic_load_explicit(&r->checked[v], memory_order_relaxed))
            announce(r->values[v].data, r->values[v].size); /* all of it is checked */
        else if (d->outgrows_memory)
            expect_again(d, split, v, k);
    }
}
