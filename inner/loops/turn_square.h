/** @file inner/loops/turn_square.h
 * Squares of 8 x 8 values are turned in registers: rows become columns.
 *
 * Threads: any; macros over vectors of the compiler. */
#ifndef BPT_INNER_TURN_SQUARE_H
#define BPT_INNER_TURN_SQUARE_H

#include <stdint.h>

enum { BPT_SQUARE = 8 };

/** A row of a square. A value is moved as bits, so floats are rows of uint32_t. */
typedef uint32_t bpt_square_f32 __attribute__((vector_size(BPT_SQUARE * sizeof(uint32_t))));
typedef uint16_t bpt_square_bf16 __attribute__((vector_size(BPT_SQUARE * sizeof(uint16_t))));

/* Values of rows i and i + 4 by turns become rows 2 i and 2 i + 1: the six bits of a value's place,
 * row then column, are rotated left by one. Three times, and rows are columns. */
#define BPT_INTERLEAVE_SQUARE(from, to)                                                            \
    do {                                                                                           \
        for (int r = 0; r < BPT_SQUARE / 2; r++) {                                                 \
            const __typeof__((from)[0]) one = (from)[r], other = (from)[r + BPT_SQUARE / 2];       \
            (to)[2 * r] = __builtin_shufflevector(one, other, 0, 8, 1, 9, 2, 10, 3, 11);           \
            (to)[2 * r + 1] = __builtin_shufflevector(one, other, 4, 12, 5, 13, 6, 14, 7, 15);     \
        }                                                                                          \
    } while (0)

/** Turns a square. @param rows,turned arrays of rows, shape [BPT_SQUARE]; @p rows is lost */
#define BPT_TURN_SQUARE(rows, turned)                                                              \
    do {                                                                                           \
        BPT_INTERLEAVE_SQUARE(rows, turned);                                                       \
        BPT_INTERLEAVE_SQUARE(turned, rows);                                                       \
        BPT_INTERLEAVE_SQUARE(rows, turned);                                                       \
    } while (0)

#endif
