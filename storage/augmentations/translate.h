/** @file storage/augmentations/translate.h
 * Inside of storage/augmentations: moves an image by whole pixels.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_STORAGE_AUGMENTATIONS_TRANSLATE_H
#define BPT_STORAGE_AUGMENTATIONS_TRANSLATE_H

#include <stdbool.h>
#include <stdint.h>

/** Pixel (y, x) becomes what was at (y + dy, x + dx), black where there was nothing.
 * @param dy, dx less than H and W, either way
 * @param in     shape [C,H,W]
 * @param[out] out shape [C,H,W]
 * @return false if both are 0: then out is not written */
bool bpt__translate(int64_t dy, int64_t dx, uint32_t C, uint32_t H, uint32_t W,
                    const uint8_t *restrict in, uint8_t *restrict out);

#endif
