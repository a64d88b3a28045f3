/** @file tests/storage/plain_columns.h
 * storage/images/resize_columns.h as it is where there are no vector instructions.
 *
 * Threads: as there. */
#ifndef BPT_TESTS_STORAGE_PLAIN_COLUMNS_H
#define BPT_TESTS_STORAGE_PLAIN_COLUMNS_H

#include "storage/images/resize_columns.h"

/** As bpt__resize_columns(). */
void plain_resize_columns(const bpt__columns *columns, const uint16_t *line, uint8_t *pixels);

#endif
