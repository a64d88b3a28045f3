/** @file base/little_endian.h
 * Numbers in the bytes of files and messages, at any address.
 *
 * Threads: any; plain functions. */
#ifndef BPT_BASE_LITTLE_ENDIAN_H
#define BPT_BASE_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/** @param[out] at shape [4] @return the byte behind */
static inline uint8_t *bpt_put_u32(uint8_t *at, uint32_t value) {
    value = htole32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

/** @param[out] at shape [8] @return the byte behind */
static inline uint8_t *bpt_put_u64(uint8_t *at, uint64_t value) {
    value = htole64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

/** @param at shape [4] */
static inline uint32_t bpt_get_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

/** @param at shape [8] */
static inline uint64_t bpt_get_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

#endif
