#include "storage/images/taps.h"

/* Weights are in units of 1 / out of a pixel. */
static bpt__taps area_taps(uint32_t i, uint32_t in, uint32_t out) {
    const uint32_t from = i * in, to = from + in; /* sides are at most 2^14 */
    const uint32_t first = from / out, last = (to - 1) / out;
    const uint32_t end = (first + 1) * out;
    return (bpt__taps){.first = first,
                       .n = last - first + 1,
                       .w_first = (to < end ? to : end) - from,
                       .w_middle = out,
                       .w_last = to - last * out};
}

/* Weights are in units of 1 / (2 out). */
static bpt__taps linear_taps(uint32_t i, uint32_t in, uint32_t out) {
    const uint32_t centre = (2 * i + 1) * in, whole = 2 * out; /* of pixel 0: out */
    if (centre <= out) return (bpt__taps){.first = 0, .n = 1, .w_first = whole};
    const uint32_t first = (centre - out) / whole, beyond = (centre - out) % whole;
    if (beyond == 0 || first + 1 >= in)
        return (bpt__taps){.first = first, .n = 1, .w_first = whole};
    return (bpt__taps){.first = first, .n = 2, .w_first = whole - beyond, .w_last = beyond};
}

bpt__taps bpt__taps_of(uint32_t i, uint32_t in, uint32_t out) {
    return out > in ? linear_taps(i, in, out) : area_taps(i, in, out);
}

void bpt__taps_span(uint32_t in, uint32_t out, uint32_t crop, uint32_t n, uint32_t *first,
                    uint32_t *n_taken) {
    const bpt__taps start = bpt__taps_of(crop, in, out), last = bpt__taps_of(crop + n - 1, in, out);
    *first = start.first;
    *n_taken = last.first + last.n - start.first;
}
