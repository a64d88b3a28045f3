/** @file tools/train/run/shard_log.h
 * How an agwu run cut its weights in shards, for a replay of it: RUN/exchange/shards.json,
 *
 *     {"begin": [0, 160, ...]}     first element of each shard, in the order of hosts
 *
 * Threads: one. */
#ifndef BPT_TOOLS_SHARD_LOG_H
#define BPT_TOOLS_SHARD_LOG_H

#include "outer/exchange/shard.h"
#include "tools/train/run/run_folder.h"

/** @return as bpt_run_folder_json() */
bpt_status bpt_shard_log_write(const bpt_run_folder *run, const bpt_shard_table *shards);

/** @param run its folder
 * @param first_host as of bpt_shard_table_create()
 * @param[out] shards caller owns, bpt_shard_table_free()
 * @return BPT_OK, BPT_ENOENT, BPT_EIO, BPT_EDATA (names file and field), BPT_ENOMEM */
bpt_status bpt_shard_log_read(const char *run, size_t n_elements, uint32_t n_shards,
                              uint32_t first_host, bpt_shard_table **shards);

#endif
