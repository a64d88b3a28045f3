#include "storage/dataset/value.h"

#include "base/checksum.h"
#include "base/little_endian.h"

/* Header, little-endian: checksum of all that follows it, database, first record, count,
 * bytes of a record. */
enum { AT_CHECKSUM = 0, AT_DATABASE = 8, AT_FIRST = 16, AT_COUNT = 24, AT_RECORD = 28 };

enum { LARGEST_PACKED_VALUE = 256 * 1024 };

uint64_t bpt__database_id(const char *name) {
    return bpt_checksum(name, strlen(name));
}

size_t bpt__value_padded(size_t bytes, size_t page_bytes) {
    const size_t n_pages = (bytes + BPT__PAGE_HEADER + page_bytes - 1) / page_bytes;
    return n_pages * page_bytes - BPT__PAGE_HEADER;
}

uint32_t bpt__value_pack(size_t record_bytes, size_t page_bytes) {
    uint32_t best = 1;
    double least = 1e9;
    for (uint32_t n = 1; n == 1 || bpt__value_bytes(record_bytes, n) <= LARGEST_PACKED_VALUE; n++) {
        const size_t stored = bpt__value_padded(bpt__value_bytes(record_bytes, n), page_bytes);
        const double waste =
            (double)(stored + BPT__PAGE_HEADER) / (double)(n * (record_bytes + sizeof(uint16_t))) -
            1;
        if (waste < least) {
            best = n;
            least = waste;
        }
        if (waste < 0.02) break;
    }
    return best;
}

uint32_t bpt__value_count(const uint8_t *value) {
    return bpt_get_u32(value + AT_COUNT);
}

uint32_t bpt__value_record_bytes(const uint8_t *value) {
    return bpt_get_u32(value + AT_RECORD);
}

void bpt__value_seal(uint8_t *value, size_t size, const bpt__value_place *place) {
    bpt_put_u64(value + AT_DATABASE, place->database);
    bpt_put_u64(value + AT_FIRST, place->first);
    bpt_put_u32(value + AT_COUNT, place->n);
    bpt_put_u32(value + AT_RECORD, place->record_bytes);
    bpt_put_u64(value + AT_CHECKSUM, bpt_checksum(value + AT_DATABASE, size - AT_DATABASE));
}

bool bpt__value_intact(const uint8_t *value, size_t size, const bpt__value_place *place) {
    return size >= bpt__value_bytes(place->record_bytes, place->n) &&
           bpt_get_u64(value + AT_DATABASE) == place->database &&
           bpt_get_u64(value + AT_FIRST) == place->first &&
           bpt_get_u32(value + AT_COUNT) == place->n &&
           bpt_get_u32(value + AT_RECORD) == place->record_bytes &&
           bpt_get_u64(value + AT_CHECKSUM) ==
               bpt_checksum(value + AT_DATABASE, size - AT_DATABASE);
}
