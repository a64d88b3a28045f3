/** @file storage/dataset/value.h
 * The stored form of records: several of one size packed into a value, with a checksum that also
 * covers where the value belongs. docs/formats.md describes it byte by byte.
 *
 * Threads: any; plain functions. */
#ifndef BPT_STORAGE_VALUE_H
#define BPT_STORAGE_VALUE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BPT__VALUE_HEADER = 32, BPT__VALUE_KEY = 4, BPT__PAGE_HEADER = 16 };

/** Where a value belongs and what it holds. */
typedef struct bpt__value_place {
    uint64_t database;     /* bpt__database_id() */
    uint64_t first;        /* index of its first record */
    uint32_t n;            /* records in it */
    uint32_t record_bytes; /* C*H*W, or those of the one encoded record */
} bpt__value_place;

/** @return what stands for a database in the header of its values */
uint64_t bpt__database_id(const char *name);

/** @return bytes of a value of @p n records before padding */
static inline size_t bpt__value_bytes(size_t record_bytes, size_t n) {
    return BPT__VALUE_HEADER + n * (record_bytes + sizeof(uint16_t));
}

/** @return @p bytes rounded up so that, with LMDB's page header, whole pages are filled */
size_t bpt__value_padded(size_t bytes, size_t page_bytes);

/** @return how many records to pack: the fewest that waste under 2 % of their pages, or what wastes
 * least within 256 KiB */
uint32_t bpt__value_pack(size_t record_bytes, size_t page_bytes);

/** Writes the header of a value whose labels and pixels are in place.
 * @param size of the value with its padding */
void bpt__value_seal(uint8_t *value, size_t size, const bpt__value_place *place);

/** @return whether header, place and checksum are right; reads nothing past @p size */
bool bpt__value_intact(const uint8_t *value, size_t size, const bpt__value_place *place);

/** @return how many records a value says it has; it has a header */
uint32_t bpt__value_count(const uint8_t *value);

/** @return how many bytes a value says each of its records has; it has a header */
uint32_t bpt__value_record_bytes(const uint8_t *value);

/** @return the label of record @p k of a value */
static inline uint32_t bpt__value_label(const uint8_t *value, size_t k) {
    uint16_t label;
    memcpy(&label, value + BPT__VALUE_HEADER + k * sizeof label, sizeof label);
    return le16toh(label);
}

/** @return the pixels of record @p k of a value of @p n, shape [C,H,W] */
static inline const uint8_t *bpt__value_pixels(const uint8_t *value, size_t record_bytes, size_t n,
                                               size_t k) {
    return value + BPT__VALUE_HEADER + n * sizeof(uint16_t) + k * record_bytes;
}

/** Writes the key of value number @p v. */
static inline void bpt__value_key(uint32_t v, uint8_t key[BPT__VALUE_KEY]) {
    const uint32_t big = htobe32(v);
    memcpy(key, &big, sizeof big);
}

#endif
