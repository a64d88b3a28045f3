/* Any bytes as a shard of WebDataset. Checksums of headers are made right first, or nothing behind
 * them would ever be read; a shard whose first byte is '!' (which is passed over) is taken as it
 * is. */
#include "tests/fuzz/fuzz_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 512, SUM = 148 };

static void mend_sums(uint8_t *tar, size_t size) {
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        uint8_t *header = tar + at;
        if (memcmp(header + 257, "ustar", 5) != 0) continue;
        unsigned sum = 0;
        memset(header + SUM, ' ', 8);
        for (size_t i = 0; i < BLOCK; i++) sum += header[i];
        snprintf((char *)header + SUM, 8, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int as_it_is = size > 0 && data[0] == '!';
    data += as_it_is;
    size -= (size_t)as_it_is;
    uint8_t *tar = malloc(size ? size : 1);
    if (!tar) abort();
    memcpy(tar, data, size);
    if (!as_it_is) mend_sums(tar, size);
    fuzz_import("webdataset", NULL, tar, size);
    free(tar);
    return 0;
}
