/** @file tests/storage/made_dataset.h
 * Datasets for tests: records that can be told from one another, in a directory that goes away.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_MADE_DATASET_H
#define BPT_TESTS_STORAGE_MADE_DATASET_H

#include "storage/dataset/dataset.h"
#include "storage/writer/writer.h"

#include <stddef.h>
#include <stdint.h>

/** A temporary directory; the path of a dataset inside of it. */
typedef struct made_place {
    char directory[64];
    char dataset[80];
} made_place;

/** Makes the directory (not the dataset); ends the test program if it cannot. */
made_place made_place_create(void);
void made_place_remove(const made_place *place);

/** @return pixel @p p of record @p i, and its label: functions of @p salt and the index */
uint8_t made_pixel(uint32_t salt, uint32_t i, size_t p);
uint32_t made_label(uint32_t salt, uint32_t i, uint32_t n_classes);

/** Options of a split with shape C,H,W and three unnamed classes. */
bpt_writer_options made_options(const char *split, uint32_t C, uint32_t H, uint32_t W);

/** Appends records [from, to) of @p salt. */
bpt_status made_append(bpt_writer *writer, const bpt_writer_options *o, uint32_t salt,
                       uint32_t from, uint32_t to);

/** Writes a whole split of @p n records. */
bpt_status made_split(const char *path, const bpt_writer_options *o, uint32_t salt, uint32_t n);

/** @return how many records of @p split are exactly those of @p salt, up to the first that is not
 */
uint32_t made_equal(const bpt_dataset *dataset, const bpt_split *split, uint32_t salt);

#endif
