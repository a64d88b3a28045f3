/** @file storage/images/resize_rows.h
 * The first half of resizing: rows of an image become one line, whose values are 256 times those of
 * pixels. For this folder only.
 *
 * Threads: any, each with lines of its own. */
#ifndef BPT_STORAGE_IMAGES_RESIZE_ROWS_H
#define BPT_STORAGE_IMAGES_RESIZE_ROWS_H

#include "storage/images/taps.h"

#include <stddef.h>

/** @param in    row 0, shape [rows,pitch]
 * @param t      which rows
 * @param whole  bpt__taps_whole() of them
 * @param n      values of a row that are taken
 * @param[out] line shape [n]; less than 4 off 256 times the mean; of one row exact
 * @param sums   shape [n], scratch */
void bpt__resize_rows(const uint8_t *in, size_t pitch, const bpt__taps *t, uint32_t whole, size_t n,
                      uint16_t *line, uint32_t *sums);

#endif
