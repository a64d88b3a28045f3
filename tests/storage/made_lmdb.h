/** @file tests/storage/made_lmdb.h
 * An LMDB as Caffe makes them, small.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_MADE_LMDB_H
#define BPT_TESTS_STORAGE_MADE_LMDB_H

#include <stdint.h>

/** Grey Datum messages of 2x2 pixels, each of message i of value i, its label i % 3; ends the test
 * where that fails.
 * @param folder that is not there yet */
void made_lmdb(const char *folder, uint8_t n);

#endif
