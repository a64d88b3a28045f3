/* The libraries' functions without files to load them from, and what both have in common. */
#include "tests/inner/gpu_on_cores/libraries/libraries.h"

#include "inner/cuda/cuda_library_private.h"
#include "tests/inner/gpu_on_cores/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

libraries_state libraries_on_cores = {.fail_at = -1, .loses_gpu = -1, .only = -1};

bpt_status bpt__cuda_load(bpt__cuda_functions *functions) {
#define X(name) .name = name,
    *functions = (bpt__cuda_functions){BPT__CUDNN_FUNCTIONS(X) BPT__CUBLASLT_FUNCTIONS(X)};
#undef X
    return BPT_OK;
}

bool libraries_strike(const char *call) {
    const bool fails = libraries_on_cores.n_calls++ == libraries_on_cores.fail_at;
    if (fails) libraries_on_cores.failed = call;
    return fails;
}

size_t libraries_room(enum libraries_engine engine) {
    if (engine == LIBRARIES_HUGE) return (size_t)1 << 40;
    return engine == LIBRARIES_ROOMY ? LIBRARIES_ROOM : 0;
}

bool libraries_run(enum libraries_engine engine, bool way) {
    libraries_state *s = &libraries_on_cores;
    s->runs[engine]++;
    s->last = engine;
    s->last_way = way;
    if ((int)engine == s->loses_gpu) s->is_lost = true;
    return engine == LIBRARIES_FAILING || (s->only >= 0 && (int)engine != s->only);
}

void *libraries_new(size_t bytes) {
    void *thing = calloc(1, bytes);
    if (!thing) {
        fprintf(stderr, "a GPU on cores: no memory for a descriptor\n");
        abort();
    }
    libraries_on_cores.n_live++;
    return thing;
}

void libraries_free(void *thing) {
    libraries_on_cores.n_live--;
    free(thing);
}

/* To 10 bits of mantissa, to the nearest. */
static float to_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~(uint32_t)0x1FFF;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float *libraries_read(enum libraries_engine engine, bpt_value_type type, const void *from,
                      int64_t n) {
    float *values = gpu_on_cores_read(type, from, n);
    for (int64_t i = 0; engine == LIBRARIES_TENSOR && i < n; i++) values[i] = to_tf32(values[i]);
    return values;
}
