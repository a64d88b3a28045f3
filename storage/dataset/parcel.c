#include "storage/dataset/parcel.h"

#include "base/checksum.h"

/* A value of the dataset's own form; behind its pixels the indices. */
static uint8_t *indices_at(const void *parcel, size_t record_bytes, uint32_t n) {
    return (uint8_t *)(uintptr_t)parcel + bpt__value_bytes(record_bytes, n);
}

size_t bpt_parcel_bytes(size_t record_bytes, uint32_t n) {
    return bpt__value_bytes(record_bytes, n) + (size_t)n * sizeof(uint32_t);
}

uint64_t bpt__parcel_home(uint64_t identity, const char *split) {
    const uint64_t both[] = {htole64(identity), htole64(bpt__database_id(split))};
    return bpt_checksum(both, sizeof both);
}

bpt__value_place bpt__parcel_place(uint64_t home, size_t record_bytes, uint32_t n) {
    return (bpt__value_place){.database = home, .n = n, .record_bytes = (uint32_t)record_bytes};
}

uint32_t bpt__parcel_index(const uint8_t *parcel, size_t record_bytes, uint32_t n, uint32_t k) {
    uint32_t index;
    memcpy(&index, indices_at(parcel, record_bytes, n) + k * sizeof index, sizeof index);
    return le32toh(index);
}

static void put_record(uint8_t *parcel, size_t record_bytes, uint32_t n, uint32_t k, uint32_t index,
                       const uint8_t *pixels, uint32_t label) {
    const uint16_t stored_label = htole16((uint16_t)label);
    const uint32_t stored_index = htole32(index);
    memcpy(parcel + BPT__VALUE_HEADER + k * sizeof stored_label, &stored_label,
           sizeof stored_label);
    memcpy((void *)(uintptr_t)bpt__value_pixels(parcel, record_bytes, n, k), pixels, record_bytes);
    memcpy(indices_at(parcel, record_bytes, n) + k * sizeof stored_index, &stored_index,
           sizeof stored_index);
}

bpt_status bpt_parcel_make(const bpt_dataset *dataset, const bpt_split *split, uint64_t identity,
                           const uint32_t *indices, uint32_t n, void *parcel) {
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const size_t record_bytes = (size_t)info->C * info->H * info->W;
    for (uint32_t k = 0; k < n; k++) {
        const uint8_t *pixels;
        uint32_t label;
        BPT_TRY(bpt_dataset_get(dataset, split, indices[k], &pixels, &label));
        put_record(parcel, record_bytes, n, k, indices[k], pixels, label);
    }
    BPT_TRY(bpt_dataset_check(dataset));
    const bpt__value_place place =
        bpt__parcel_place(bpt__parcel_home(identity, split->name), record_bytes, n);
    bpt__value_seal(parcel, bpt_parcel_bytes(record_bytes, n), &place);
    return BPT_OK;
}
