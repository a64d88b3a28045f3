/** @file tests/storage/made_encoded.h
 * Encoded datasets for tests: JPEG files of many sizes.
 *
 * Threads: the test's thread. What goes wrong ends the program. */
#ifndef BPT_TESTS_STORAGE_MADE_ENCODED_H
#define BPT_TESTS_STORAGE_MADE_ENCODED_H

#include "storage/dataset/record.h"
#include "storage/images/image_encoder.h"
#include "storage/writer/writer.h"

#include <stdint.h>

/** @return sides of image @p i: 40 to 139, upright, lying and square ones */
uint32_t made_encoded_H(uint32_t i);
uint32_t made_encoded_W(uint32_t i);

/** Makes the file of image @p i, a picture with slopes and discs.
 * @param C 1 or 3
 * @param[in,out] file its memory is used again; bpt_free(file->data) at the end
 * @return its record, whose data are those of the file */
bpt_record made_encoded_record(uint32_t i, uint32_t C, bpt_image_file *file);

/** Writes or appends images @p from to @p to - 1, with labels i % 3.
 * @return as the functions of storage/writer/writer.h */
bpt_status made_encoded_range(const char *path, const bpt_writer_options *o, uint32_t from,
                              uint32_t to);

/** Writes a split of images 0 to @p n - 1, likewise. */
bpt_status made_encoded_split(const char *path, const bpt_writer_options *o, uint32_t n);

/** @return options of an encoded split with three unnamed classes */
bpt_writer_options made_encoded_options(const char *split, uint32_t C);

#endif
