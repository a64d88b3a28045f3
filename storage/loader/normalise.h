/** @file storage/loader/normalise.h
 * Pixels become what a network sees. For this folder only.
 *
 * Threads: any, each with values of its own. */
#ifndef BPT_STORAGE_NORMALISE_H
#define BPT_STORAGE_NORMALISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** out[i] = pixels[i] * scale + shift, both rounded to a float.
 * @param past_caches values are written to memory past the caches, which would fetch every line
 *                    before they overwrite it: for so many that they do not stay there until they
 *                    are read. The values are the same
 * @param pixels      shape [n]
 * @param[out] out    shape [n]; another thread sees them after what makes it wait for this one */
void bpt__normalise(const uint8_t *pixels, size_t n, float scale, float shift, bool past_caches,
                    float *out);

#endif
