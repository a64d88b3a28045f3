/** @file tools/plan/cluster_file.h
 * The file that describes a cluster: written by bpt-plan --measure or by hand, read by bpt-plan;
 * docs/formats.md describes it.
 *
 * Threads: one at a time. */
#ifndef BPT_TOOLS_CLUSTER_FILE_H
#define BPT_TOOLS_CLUSTER_FILE_H

#include "base/yaml.h"
#include "tools/plan/cluster.h"

#include <stdio.h>

enum { BPT_CLUSTER_FORMAT = 1 };

/** A file that was read: texts of the cluster are borrowed from the document. */
typedef struct bpt_cluster_file {
    bpt_cluster cluster;
    bpt_yaml *document;
} bpt_cluster_file;

/** Reads a file.
 * @param[out] file caller owns, bpt_cluster_file_free(), also on error
 * @return BPT_OK, BPT_EUSAGE (no such file, not such a file, or a value out of range: names file
 *         and line), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_cluster_file_read(const char *path, bpt_cluster_file *file);

/** The same from memory. @param name stands for the path in errors */
bpt_status bpt_cluster_file_parse(const char *name, const char *text, size_t size,
                                  bpt_cluster_file *file);
void bpt_cluster_file_free(bpt_cluster_file *file);

/** Checks that what is at @p path may give way to a new file: only such a file, of whatever format,
 * or an empty one. Nothing there is right too.
 * @return BPT_OK, BPT_EEXIST (anything else, a link that leads nowhere included; with hint),
 * BPT_EIO, BPT_ENOMEM */
bpt_status bpt_cluster_file_check_place(const char *path);

/** Writes a file, whole or not at all.
 * @param comment lines that begin with '#', for people
 * @return as bpt_file_write() */
bpt_status bpt_cluster_file_write(const char *path, const bpt_cluster *cluster,
                                  const char *comment);

/** The text of such a file; errors are those of the stream. */
void bpt_cluster_file_put(FILE *out, const bpt_cluster *cluster, const char *comment);

#endif
