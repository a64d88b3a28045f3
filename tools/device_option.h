/** @file tools/device_option.h
 * The option --device of the programs that run networks.
 *
 * Threads: the one whose networks it will have. */
#ifndef BPT_TOOLS_DEVICE_OPTION_H
#define BPT_TOOLS_DEVICE_OPTION_H

#include "inner/device.h"
#include "tools/precision.h"

/** What a process that is by itself gives as its place. */
#define BPT_HOST_PLACE_ALONE                                                                       \
    { .index = 0, .n = 1 }

/** One of the processes of a job that compute on a host. */
typedef struct bpt_host_place {
    unsigned index, n; /* index < n */
} bpt_host_place;

/** Refuses a precision that the choice rules out wherever it is made: what can be known before a
 * device is opened.
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_device_option_check(const char *choice, bpt_precision precision);

/** Opens what the options name. Process i of a host has GPU i of it; where there are fewer GPUs,
 * auto leaves the others to the cores, and so it does where the GPU does not open, with a warning.
 * @param choice "auto", "cpu", "cuda", or one for all processes, as "cuda:1"
 * @param[out] device caller owns, bpt_device_close(); NULL: the processor's cores
 * @return BPT_OK, BPT_EUSAGE (not known, not there, or none is left for this process; a precision
 * that it does not have; with hint), BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_device_option_open(const char *choice, bpt_precision precision, bpt_host_place place,
                                  bpt_device **device);

/** @param[out] text what tables call it, shape [size]: "cuda:0", "cpu"
 * @param name of a device, "" of the cores */
void bpt_device_short_name(const char *name, char *text, size_t size);

#endif
