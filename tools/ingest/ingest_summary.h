/** @file tools/ingest/ingest_summary.h
 * What is said at the end of work that has made a split.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_SUMMARY_H
#define BPT_TOOLS_INGEST_SUMMARY_H

#include "base/status.h"
#include "storage/dataset/dataset.h"
#include "tools/ingest/bad_report.h"

/** Writes what the images of a split are: "3x32x32 (CxHxW)"; of encoded ones the least and most of
 * their sides, and the bytes of all files.
 * @param[out] text shape [size], a text; 128 are enough */
void bpt_ingest_size_text(const bpt_dataset_info *info, const bpt_split *split, char *text,
                          size_t size);

/** Says how many images a split has and has got, of which classes, and warns of classes without
 * any.
 * @param path of the dataset
 * @param bad  what was passed over; NULL: nothing could be
 * @param n_found images that were there before the work began, by one that was stopped
 * @return what bpt_dataset_open() returns */
bpt_status bpt_ingest_summary(const char *path, const char *split, const bpt_bad_report *bad,
                              uint64_t n_found, double seconds);

#endif
