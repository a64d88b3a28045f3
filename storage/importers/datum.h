/** @file storage/importers/datum.h
 * Caffe's Datum: one image with its label, as a message of Protocol Buffers. For importers only.
 *
 * The message, in proto2: optional int32 channels = 1, height = 2, width = 3; optional bytes data =
 * 4; optional int32 label = 5; repeated float float_data = 6; optional bool encoded = 7.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_IMPORTERS_DATUM_H
#define BPT_STORAGE_IMPORTERS_DATUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a message says; 0 where it says nothing. */
typedef struct bpt__datum {
    int32_t channels, height, width, label;
    const uint8_t *data; /* in the message, shape [n_data]; NULL: there is none */
    size_t n_data;
    bool encoded;    /* data are an image file, else planes, shape [channels,height,width] */
    bool has_floats; /* float_data are there */
} bpt__datum;

/** Reads a message; nothing outside of it is looked at, and of data nothing at all. Fields that it
 * does not know are passed over; of one that is there twice the last counts.
 * @param message shape [size]
 * @return NULL, or what is wrong: a constant text like "a field reaches beyond the end" */
const char *bpt__datum_read(const uint8_t *message, size_t size, bpt__datum *datum);

#endif
