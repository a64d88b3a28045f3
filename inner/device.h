/** @file inner/device.h
 * Where a network computes: on the processor's cores, or on an accelerator, whole or beside them.
 *
 * The cores' half of inner/ cuts a step into tasks of some ten microseconds and lets the scheduler
 * place them. An accelerator wants the opposite, one description of the whole step that it can run
 * by itself. So what stands behind a table here is a network, not a layer: bpt_network
 * (inner/network/network.h) has the one interface for both, and asks the table for what it is to
 * do.
 *
 * A kind of device is a folder of inner/ with such a table. CUDA's is the only one: device.c knows
 * it by name, in the choices that it reads and in its errors.
 *
 * Threads: a device and its networks belong to one thread. */
#ifndef BPT_INNER_DEVICE_H
#define BPT_INNER_DEVICE_H

#include "base/status.h"
#include "base/yaml.h"
#include "inner/models/model.h"
#include "inner/network/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_device_network bpt_device_network;

/** What a network is made for. */
typedef struct bpt_device_wish {
    const bpt_model *model; /* borrowed; a whole one */
    int64_t batch;
    bpt_value_type activations;
    bpt_learning learning; /* .optimizer is set */
    bool forward_only;
    bool images;    /* batches are bpt_images (base/images.h) */
    bpt_pool *pool; /* borrowed; for the cores' part, if there is one */
} bpt_device_wish;

typedef enum bpt_device_work {
    BPT_DEVICE_TRAIN,    /* forward, loss, backward, update */
    BPT_DEVICE_GRADIENT, /* forward, loss, backward */
    BPT_DEVICE_APPLY,    /* update; without a batch and an outcome */
    BPT_DEVICE_EVALUATE, /* forward as in evaluation, loss */
    BPT_DEVICE_N_WORKS,
} bpt_device_work;

/** @return whether the work changes weights */
static inline bool bpt_device_updates(bpt_device_work work) {
    return work == BPT_DEVICE_TRAIN || work == BPT_DEVICE_APPLY;
}

/** What a run is given; borrowed until it has ended. Vectors of labels as in
 * inner/network/network.h. */
typedef struct bpt_device_run {
    const void *input;
    const int32_t *labels, *second; /* second: NULL: no sample has one */
    const float *parts;
    const void *next; /* input of the run that comes then; NULL: not known. It may be copied to the
                       * device while this run computes */
    bpt_draw draw;
    uint64_t updates; /* this one included */
    float rate, denominator;
} bpt_device_run;

typedef struct bpt_device_outcome {
    bpt_batch_result result; /* zeros of BPT_DEVICE_APPLY */
    bool updated;            /* weights were changed, or some of them, also where that failed */
} bpt_device_outcome;

typedef void (*bpt_device_visit)(void *context, const char *label, const char *kind, uint64_t ns);

/** One that is open; the first member of what the kind has. */
typedef struct bpt_device {
    const struct bpt_device_kind *kind;
    char name[128];       /* "cuda:0 (NVIDIA H100 80GB HBM3)" */
    bool bf16;            /* it multiplies bfloat16 */
    bool uses_cores;      /* the pool of its networks too */
    bool can_take_images; /* bpt_images (base/images.h) as batches */
    bool takes_images;    /* what networks that are created from now on are given */
    size_t memory_bytes;  /* its own */
    unsigned n_measured; /* kernels, and shares of the cores, that were measured since it was opened
                          * and not taken from a file (bpt_device_load_choices()) */
} bpt_device;

typedef struct bpt_device_kind {
    const char *name; /* "cuda" */

    /** @param[out] n devices of this kind that are here and work; 0 also without a driver */
    bpt_status (*count)(int *n);
    /** @param tf32 floats may be multiplied with 10 bits of their mantissas */
    bpt_status (*open)(int index, bool tf32, bpt_device **device);
    void (*close)(bpt_device *device);

    /** @param[out] net caller owns, free(); weights are zero
     * @param[out] memory of the device that it takes
     * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (more than the device has; what it cannot do),
     * BPT_EBACKEND */
    bpt_status (*create)(bpt_device *device, const bpt_device_wish *wish, bpt_device_network **net,
                         bpt_network_memory *memory);
    void (*free)(bpt_device_network *net);

    /** Begins a run; what the device does by itself goes on behind the return.
     * @return BPT_OK: end() follows, and nothing else before it; or an error: nothing is under way
     */
    bpt_status (*begin)(bpt_device_network *net, bpt_device_work work, const bpt_device_run *run);

    /** Waits for the run's end. @param[out] outcome set in any case
     * @return as the functions of inner/network/network.h */
    bpt_status (*end)(bpt_device_network *net, bpt_device_work work, bpt_device_outcome *outcome);

    /** As bpt_network_get() and bpt_network_set(), or those of what learns.
     * @param first segment: 0, or bpt_model_frozen_segments()
     * @param flat of the segments from there on, in canonical order. From 0 on, where layers are
     *             frozen, weights alone are asked for */
    bpt_status (*get)(bpt_device_network *net, bpt_vector which, size_t first, float *flat);
    bpt_status (*set)(bpt_device_network *net, bpt_vector which, size_t first, const float *flat);

    /** As bpt_network_hand_out(): end() of BPT_DEVICE_GRADIENT then calls parts->take(), of a run
     * that fails perhaps not. NULL of a device that does not: all parts are handed out behind it.
     * @return BPT_OK, BPT_ENOMEM, BPT_EFULL, BPT_EBACKEND */
    bpt_status (*hand_out)(bpt_device_network *net, const bpt_gradient_parts *parts);

    /** Pins memory of the host, as bpt_device_pin() says. Both NULL of a device that gains nothing
     * by it. @return whether it could */
    bool (*pin)(const bpt_device *device, void *at, size_t bytes);
    void (*unpin)(const bpt_device *device, void *at);

    /* Of a device that can be one of two (inner/mixed/); else these three are NULL. */

    /** Behind BPT_DEVICE_GRADIENT: adds what another network has of other samples of the same step,
     * with the same denominator: as of bpt_network_get_learned(). */
    bpt_status (*add_gradients)(bpt_device_network *net, const float *flat);

    /** Memory of the host that the device copies from and to at its full speed.
     * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
    bpt_status (*host_allocate)(size_t bytes, void **at);
    void (*host_free)(void *at);

    /** @return who computes a step, for people ("of 64 samples of a step cuda:0 has 57, 2 cores
     * have 7"). Valid while the network lives. NULL of a device that computes by itself */
    const char *(*sharing)(const bpt_device_network *net);

    /** @return memory of the host that a network takes beside the device's, as
     * bpt_network_host_memory_of(). NULL of a device that takes none */
    bpt_network_memory (*host_memory)(const bpt_device_network *net);

    /** Calls @p visit for the parts of a training step with what each took in one that was measured
     * part by part. */
    void (*visit)(const bpt_device_network *net, bpt_device_visit visit, void *context);

    /** What was chosen by measurement so far, as YAML, and what another process has chosen: as
     * bpt_device_save_choices() and bpt_device_load_choices(). @param[out] text caller owns
     * @param map what write_choices() wrote, in a file that may hold more */
    bpt_status (*write_choices)(const bpt_device *device, char **text);
    bpt_status (*read_choices)(bpt_device *device, const bpt_yaml *doc, const bpt_yaml_node *map,
                               const char **unlike);

    /** @return nanoseconds of a training step's convolutions and products, each as it was when it
     * was measured by itself */
    uint64_t (*products_ns)(const bpt_device_network *net);
} bpt_device_kind;

/** @param[out] n accelerators that are here and work, of all kinds that this program is built with
 * @return BPT_OK, BPT_EBACKEND (a driver fails, or is too old for this program) */
bpt_status bpt_device_count(int *n);

/** Opens what an option names.
 * @param choice "cpu", "cuda" (the first), "cuda:1", "cuda+cpu", "cuda:1+cpu" (inner/mixed/: the
 *               cores take part of each batch where that is faster)
 * @param tf32 as in bpt_device_kind.open
 * @param[out] device caller owns, bpt_device_close(); NULL: the processor's cores
 * @return BPT_OK, BPT_EUSAGE (no such device here; this program is built without it; with hint),
 * BPT_EFULL (its memory is full), BPT_EBACKEND */
bpt_status bpt_device_open(const char *choice, bool tf32, bpt_device **device);

/** Has networks that are created from now on take batches of bpt_images (base/images.h), not of
 * floats, if the device can move and normalise them: the same values come of it.
 * @param device NULL: the processor's cores, which cannot */
void bpt_device_give_images(bpt_device *device);

/** @return whether networks that are created now do */
static inline bool bpt_device_takes_images(const bpt_device *device) {
    return device && device->takes_images;
}

/** Writes what a device has chosen by measurement for the networks that it was given: the kernels
 * that were fastest. @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_device_save_choices(const bpt_device *device, const char *path);

/** Lets networks that are created from now on be computed as another process has chosen: without
 * measurements, and with the bits that it had.
 * @param[out] unlike what the file is of, for people, if it is of no use here ("another card");
 *                    NULL: it is
 * @return BPT_OK, BPT_EUSAGE (no such file, or not one of choices; with hint), BPT_EIO, BPT_ENOMEM
 */
bpt_status bpt_device_load_choices(bpt_device *device, const char *path, const char **unlike);

/** Whether choices are of the format that a kind of device reads. Asked before anything else of
 * them: those of another one may hold what is not known here.
 * @param[out] unlike as above; NULL also where no format is named
 * @return BPT_OK, BPT_EUSAGE (it is no number) */
bpt_status bpt_device_choices_format(const bpt_yaml *doc, const bpt_yaml_node *map, int64_t format,
                                     const char **unlike);

/** Memory of a caller's that is pinned; zeros: none. */
typedef struct bpt_pinned {
    const bpt_device *device;
    void *at;
} bpt_pinned;

/** Lets a device copy from and to a vector of the caller's at its full speed: a hint, which may
 * come to nothing. One of less than a megabyte gains nothing by it.
 * @param device NULL: the processor's cores, which copy nothing
 * @param at     not NULL
 * @param[out] pinned bpt_device_unpin(), before the memory or the device is gone */
void bpt_device_pin(const bpt_device *device, void *at, size_t bytes, bpt_pinned *pinned);
void bpt_device_unpin(bpt_pinned *pinned);

/** @param device NULL is allowed; without networks */
void bpt_device_close(bpt_device *device);

#endif
