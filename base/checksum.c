#include "base/checksum.h"

#include <xxhash.h>

uint64_t bpt_checksum(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}
