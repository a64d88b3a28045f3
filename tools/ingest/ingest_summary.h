/** @file tools/ingest/ingest_summary.h
 * What is said at the end of work that has made a split.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_SUMMARY_H
#define BPT_TOOLS_INGEST_SUMMARY_H

#include "base/status.h"
#include "tools/ingest/bad_report.h"

/** Says how many images a split has, of which classes, and warns of classes without any.
 * @param path of the dataset
 * @param bad  what was passed over; NULL: nothing could be
 * @return what bpt_dataset_open() returns */
bpt_status bpt_ingest_summary(const char *path, const char *split, const bpt_bad_report *bad,
                              double seconds);

#endif
