/** @file tests/inner/gpu_on_cores/libraries/libraries.h
 * cuDNN and cuBLASLt for GPUs that are made up: what tests of the search for engines ask of them
 * beside what their own headers declare.
 *
 * Each names engines that refuse, that fail when they run, that want room or too much of it, and
 * that give wrong results or other ones each time, and says so: NaNs, for who runs them. How fast
 * they are a test says.
 *
 * Threads: one. */
#ifndef TESTS_INNER_GPU_ON_CORES_LIBRARIES_H
#define TESTS_INNER_GPU_ON_CORES_LIBRARIES_H

#include "inner/loops/value_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Engines of both libraries, by what they do. */
enum libraries_engine {
    LIBRARIES_UNSTABLE, /* other bits each time: cuDNN says so; of cuBLASLt unless told not to */
    LIBRARIES_TENSOR,   /* floats with 10 bits of mantissa: cuDNN says so */
    LIBRARIES_UNBUILT,  /* there is no plan of it */
    LIBRARIES_FAILING,  /* its plan does not run */
    LIBRARIES_ROOMY,    /* wants a workspace */
    LIBRARIES_HUGE,     /* wants more than anybody gives; of cuBLASLt though less was asked for */
    LIBRARIES_WINOGRAD, /* of floats: loses precision, and says so */
    LIBRARIES_PLAIN,
    LIBRARIES_N_ENGINES,
};

enum { LIBRARIES_ROOM = 1 << 16 }; /* bytes of workspace */

/** What a test sets and sees. */
typedef struct libraries_state {
    int64_t n_live;     /* handles and descriptors that there are */
    int64_t n_calls;    /* so far */
    int64_t fail_at;    /* the call with this number fails; -1: none */
    const char *failed; /* its name */
    int runs[LIBRARIES_N_ENGINES];
    enum libraries_engine last; /* that ran */
    bool last_way;              /* it had bias or ReLU within, or gradients to be converted */
    int loses_gpu;              /* the engine behind which a GPU runs nothing any more; -1: none */
    bool is_lost;
    int only;        /* the engine that alone runs; -1: all that can */
    int n_forgotten; /* engines that are not there any more, the first of each list */
} libraries_state;

extern libraries_state libraries_on_cores;

/** Counts a call. @return whether it is to fail */
bool libraries_strike(const char *call);

/** Counts a run. @return whether the engine's own way is to fail */
bool libraries_run(enum libraries_engine engine, bool way);

/** @return bytes of workspace that an engine wants */
size_t libraries_room(enum libraries_engine engine);

/** @return memory of so many bytes, zeros, that counts as a handle or descriptor */
void *libraries_new(size_t bytes);
void libraries_free(void *thing);

/** @return values as floats, of which @p engine sees that much; free() */
float *libraries_read(enum libraries_engine engine, bpt_value_type type, const void *from,
                      int64_t n);

#endif
