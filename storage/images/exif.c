#include "storage/images/exif.h"

#include <stdbool.h>
#include <string.h>

enum { HEADER_BYTES = 8, ENTRY_BYTES = 12, ORIENTATION = 0x0112, SHORT = 3, LONG = 4 };

typedef struct tiff {
    const uint8_t *data;
    size_t size;
    bool little_endian;
} tiff;

/* @return n bytes as a number; 0 beyond the end, where no valid block has anything to say */
static uint32_t number(const tiff *t, size_t at, unsigned n) {
    if (at > t->size || n > t->size - at) return 0;
    uint32_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | t->data[at + (t->little_endian ? n - 1 - i : i)];
    return value;
}

uint32_t bpt__exif_orientation(const uint8_t *data, size_t size) {
    if (size < HEADER_BYTES) return 1;
    const bool little = memcmp(data, "II*\0", 4) == 0;
    if (!little && memcmp(data, "MM\0*", 4) != 0) return 1;
    const tiff t = {data, size, little};
    const size_t directory = number(&t, 4, 4);
    const uint32_t n = number(&t, directory, 2);
    for (uint32_t i = 0; i < n; i++) {
        const size_t entry = directory + 2 + (size_t)i * ENTRY_BYTES;
        if (entry + ENTRY_BYTES > size) return 1;
        if (number(&t, entry, 2) != ORIENTATION) continue;
        const uint32_t type = number(&t, entry + 2, 2);
        if ((type != SHORT && type != LONG) || number(&t, entry + 4, 4) != 1) return 1;
        const uint32_t value = number(&t, entry + 8, type == SHORT ? 2 : 4);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}
