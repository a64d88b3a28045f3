/** @file storage/dataset/scratch.h
 * A folder of this host's own for records of a dataset that is elsewhere: those that it was given,
 * each once.
 *
 * Parcels are added while others read. Each is verified before it is written, in a transaction of
 * its own: who is killed leaves what was complete, and the next one that opens the folder finds it
 * there. The folder belongs to one dataset for ever, and to one process at a time.
 *
 * Caveats: as dataset.h. The memory map is as large as all splits need in parcels of several
 * records, the file only as large as what it holds and some pages a parcel: parcels are to be
 * large. Threads: open and close while one thread runs; one thread at a time adds; every other
 * function from any thread. */
#ifndef BPT_STORAGE_SCRATCH_H
#define BPT_STORAGE_SCRATCH_H

#include "storage/dataset/dataset.h"

#include <stdbool.h>

typedef struct bpt_scratch bpt_scratch;

/** Opens the folder, making it where it is missing.
 * @param path its parent folders are created too
 * @param description of bpt_dataset_export(), shape [size]
 * @param[out] out caller owns, bpt_scratch_close()
 * @return BPT_OK, BPT_EDATA (it holds records of another dataset), BPT_EEXIST (something else is
 *         there), BPT_ECORRUPT, BPT_EIO (also: another process has it), BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_scratch_open(const char *path, const char *description, size_t size,
                            bpt_scratch **out);
/** NULL is allowed. */
void bpt_scratch_close(bpt_scratch *scratch);

/** @return bytes that the tables of an open scratch take, but for some 20 a parcel: the map is the
 * file's, which the system takes back when it needs memory
 * @param info of the dataset */
size_t bpt_scratch_bytes(const bpt_dataset_info *info);

/** @return the dataset, described as at its origin, of which only what is here can be read;
 * borrowed, valid until bpt_scratch_close() */
const bpt_dataset *bpt_scratch_dataset(const bpt_scratch *scratch);

/** @param split of bpt_scratch_dataset()
 * @param i     in [0, split->count)
 * @return whether the record is here */
bool bpt_scratch_has(const bpt_scratch *scratch, const bpt_split *split, uint32_t i);

/** Adds a parcel: on return it can be read, and is there when the process is gone; a power cut may
 * take away the latest ones.
 * @param split   of bpt_scratch_dataset()
 * @param indices of the records that it should hold, shape [n]
 * @param parcel  of bpt_parcel_make(), shape [bpt_parcel_bytes()]
 * @return BPT_OK, BPT_EUSAGE (one of them is here, or no record), BPT_ECORRUPT (it is damaged, or
 * holds others), BPT_ENOSPC, BPT_EIO, BPT_EFULL, BPT_ENOMEM; on error the folder is as it was */
bpt_status bpt_scratch_add(bpt_scratch *scratch, const bpt_split *split, const uint32_t *indices,
                           uint32_t n, const void *parcel);

/** Looks at a folder without changing it.
 * @param description as above
 * @param[out] bytes of the file in it; 0 where there is none
 * @return BPT_OK, BPT_EDATA (it holds records of another dataset), BPT_ECORRUPT, BPT_EIO,
 *         BPT_ENOMEM */
bpt_status bpt_scratch_look(const char *path, const char *description, size_t size,
                            uint64_t *bytes);

#endif
