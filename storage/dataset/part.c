#include "storage/dataset/part.h"

#include "base/memory.h"
#include "storage/dataset/parcel.h"

enum { BLOCK = 1024 }; /* parcels */

static size_t count_blocks(uint32_t count) {
    return count / BLOCK + 1; /* each parcel has a record of its own */
}

size_t bpt__part_bytes(uint32_t count) {
    const bpt__part *part = NULL;
    return count * sizeof *part->where + count_blocks(count) * sizeof *part->blocks;
}

bpt_status bpt__part_create(uint64_t home, size_t record_bytes, uint32_t count, bpt__part *part) {
    *part = (bpt__part){.home = home, .record_bytes = record_bytes, .count = count};
    part->n_blocks = count_blocks(count);
    BPT_TRY(bpt_alloc("places of records", count, sizeof *part->where, (void **)&part->where));
    return BPT_NEW("blocks of parcels", part->n_blocks, &part->blocks);
}

void bpt__part_free(bpt__part *part) {
    for (size_t b = 0; part->blocks && b < part->n_blocks; b++) bpt_free(part->blocks[b]);
    bpt_free(part->blocks);
    bpt_free((void *)part->where);
    *part = (bpt__part){0};
}

/* Whether the sizes and indices of a parcel are those of one: what comes next relies on them, and
 * its checksum may be looked at later. */
static bool is_plausible(const bpt__part *part, const uint8_t *data, size_t size, uint32_t *n) {
    if (size < BPT__VALUE_HEADER) return false;
    *n = bpt__value_count(data);
    if (*n == 0 || *n > part->count || size != bpt_parcel_bytes(part->record_bytes, *n))
        return false;
    for (uint32_t k = 0; k < *n; k++)
        if (bpt__parcel_index(data, part->record_bytes, *n, k) >= part->count) return false;
    return true;
}

bpt_status bpt__part_reserve(bpt__part *part) {
    const size_t b = part->n_parcels / BLOCK;
    if (b >= part->n_blocks) return bpt_fail(BPT_ECORRUPT, "there are more parcels than records");
    return part->blocks[b] ? BPT_OK : BPT_NEW("parcels", BLOCK, &part->blocks[b]);
}

bpt_status bpt__part_add(bpt__part *part, const uint8_t *data, size_t size, bool checked) {
    uint32_t n;
    if (!is_plausible(part, data, size, &n))
        return bpt_fail(BPT_ECORRUPT, "a parcel holds records that are none");
    BPT_TRY(bpt__part_reserve(part));
    bpt__kept_parcel *parcel = &part->blocks[part->n_parcels / BLOCK][part->n_parcels % BLOCK];
    parcel->data = data;
    parcel->n = n;
    atomic_store_explicit(&parcel->checked, checked, memory_order_relaxed);
    const uint64_t number = (uint64_t)++part->n_parcels << 32;
    for (uint32_t k = 0; k < n; k++)
        atomic_store_explicit(&part->where[bpt__parcel_index(data, part->record_bytes, n, k)],
                              number | k, memory_order_release);
    return BPT_OK;
}

bpt__kept_parcel *bpt__part_find(const bpt__part *part, uint32_t i, uint32_t *k) {
    const uint64_t where = atomic_load_explicit(&part->where[i], memory_order_acquire);
    if (where == 0) return NULL;
    const uint32_t number = (uint32_t)(where >> 32) - 1;
    *k = (uint32_t)where;
    return &part->blocks[number / BLOCK][number % BLOCK];
}
