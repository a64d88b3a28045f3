/** @file storage/dataset/parcel.h
 * Records on their way to another host, and as they are kept there: any of one split, with their
 * indices, as one value with a checksum. docs/formats.md describes it byte by byte.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_PARCEL_H
#define BPT_STORAGE_PARCEL_H

#include "storage/dataset/dataset.h"
#include "storage/dataset/value.h"

/** @param record_bytes C*H*W
 * @return bytes of a parcel of @p n records: grows by the same for each */
size_t bpt_parcel_bytes(size_t record_bytes, uint32_t n);

/** Packs records, each checked before.
 * @param identity checksum of bpt_dataset_export()
 * @param indices  shape [n]
 * @param n        at least 1
 * @param[out] parcel shape [bpt_parcel_bytes()]
 * @return BPT_OK, BPT_EUSAGE, BPT_ECORRUPT (as bpt_dataset_get()) */
bpt_status bpt_parcel_make(const bpt_dataset *dataset, const bpt_split *split, uint64_t identity,
                           const uint32_t *indices, uint32_t n, void *parcel);

/** @return what stands in the header of parcels for their split and dataset */
uint64_t bpt__parcel_home(uint64_t identity, const char *split);

/** @return where a parcel of @p n records of a home belongs, for value.h */
bpt__value_place bpt__parcel_place(uint64_t home, size_t record_bytes, uint32_t n);

/** @return the index in its split of record @p k of a parcel of @p n */
uint32_t bpt__parcel_index(const uint8_t *parcel, size_t record_bytes, uint32_t n, uint32_t k);

#endif
