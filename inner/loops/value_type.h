/** @file inner/loops/value_type.h
 * The two types that activations and their gradients can have in memory; loops compute in float.
 *
 * bfloat16 is the upper half of a float: its range with 8 bits of precision. Storing rounds to
 * nearest, ties to even. A NaN stays one.
 *
 * Threads: any. */
#ifndef BPT_INNER_VALUE_TYPE_H
#define BPT_INNER_VALUE_TYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum bpt_value_type { BPT_F32, BPT_BF16 } bpt_value_type;

typedef uint16_t bpt_bf16;

/** @return bytes of one value */
static inline size_t bpt_value_bytes(bpt_value_type type) {
    return type == BPT_BF16 ? sizeof(bpt_bf16) : sizeof(float);
}

/** @return values that an array of @p n takes in whole lines of the cache, an odd number of them:
 * arrays that are powers of two apart would share a set of the cache */
static inline int64_t bpt_odd_lines(bpt_value_type type, int64_t n) {
    const int64_t line = 64 / (int64_t)bpt_value_bytes(type);
    return ((n + line - 1) / line | 1) * line;
}

/** @return where value number @p i of an array is; bpt_place_at() to write there */
static inline const void *bpt_value_at(bpt_value_type type, const void *x, int64_t i) {
    return (const char *)x + i * (int64_t)bpt_value_bytes(type);
}

static inline void *bpt_place_at(bpt_value_type type, void *x, int64_t i) {
    return (char *)x + i * (int64_t)bpt_value_bytes(type);
}

static inline float bpt_from_f32(float x) {
    return x;
}

static inline float bpt_to_f32(float x) {
    return x;
}

static inline float bpt_from_bf16(bpt_bf16 x) {
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static inline bpt_bf16 bpt_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40; /* quiet; rounding could make it infinite, or a zero */
    return (bpt_bf16)((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
}

/* x where y is above 0 (and not a NaN), else 0. */
static inline float bpt_where_positive_f32(float y, float x) {
    return y > 0.0f ? x : 0.0f;
}

static inline bpt_bf16 bpt_where_positive_bf16(bpt_bf16 y, bpt_bf16 x) {
    const int positive = (bpt_bf16)(y - 1) < 0x7F80; /* a mask: no branch to turn into vectors */
    return (bpt_bf16)(x & -positive);
}

/* A loop is written once, as a macro of what a value is in memory (f32 or bf16), and compiled for
 * both: bpt_mem_f32 and bpt_mem_bf16 are the types, bpt_from_ and bpt_to_ the conversions. */
typedef float bpt_mem_f32;
typedef bpt_bf16 bpt_mem_bf16;

/** @p loop is a macro whose first parameter is f32 or bf16. */
#define BPT_FOR_TYPE(type, loop, ...)                                                              \
    do {                                                                                           \
        if ((type) == BPT_BF16)                                                                    \
            loop(bf16, __VA_ARGS__);                                                               \
        else                                                                                       \
            loop(f32, __VA_ARGS__);                                                                \
    } while (0)

#endif
