/** @file tools/device_option.h
 * The option --device of the programs that run networks.
 *
 * Threads: the one whose networks it will have. */
#ifndef BPT_TOOLS_DEVICE_OPTION_H
#define BPT_TOOLS_DEVICE_OPTION_H

#include "inner/device.h"
#include "tools/precision.h"

enum { BPT_DEVICE_CHOICE_SIZE = 32 };

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

/** Tells what a process opens of "auto", "cuda" and "cuda+cpu": process i of a host GPU i of it.
 * Where there are fewer GPUs, but one, auto leaves the others to the cores, with a warning of the
 * first of them: they may be many, or each may be shown a GPU of its own and no other.
 * @param n_devices that the process finds
 * @param[out] own  for bpt_device_open(): "cpu", "cuda:1", "cuda:1+cpu"; the choice itself where
 *                  there is none
 * @return BPT_OK, BPT_EUSAGE (not "auto", and no GPU is left for it; with hint) */
bpt_status bpt_device_option_own(const char *choice, bpt_host_place place, int n_devices,
                                 char own[BPT_DEVICE_CHOICE_SIZE]);

/** Opens what the options name, of "auto", "cuda" and "cuda+cpu" what bpt_device_option_own()
 * tells. Where that does not open auto takes the cores, with a warning.
 * @param choice "auto", "cpu", "cuda", "cuda+cpu", or one for all processes, as "cuda:1"
 * @param[out] device caller owns, bpt_device_close(); NULL: the processor's cores
 * @return BPT_OK, BPT_EUSAGE (not known, not there, or none is left for this process; a precision
 * that it does not have; with hint), BPT_ENOMEM, BPT_EFULL (named, and its memory is full),
 * BPT_EBACKEND */
bpt_status bpt_device_option_open(const char *choice, bpt_precision precision, bpt_host_place place,
                                  bpt_device **device);

/** @param wanted 0: no number of them
 * @param cores    of a process without a device
 * @return threads of a process: as many as are wanted, else one on a device that needs no more, or
 *         @p cores */
unsigned bpt_device_option_threads(const bpt_device *device, unsigned wanted, unsigned cores);

/** Logs who computes a step where a device and the cores have it in common. */
void bpt_device_option_say(const bpt_network *net);

/** @param[out] text what tables call it, shape [size]: "cuda:0", "cpu"
 * @param name of a device, "" of the cores */
void bpt_device_short_name(const char *name, char *text, size_t size);

#endif
