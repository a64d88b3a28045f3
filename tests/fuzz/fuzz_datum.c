/* Any bytes as a Datum of Caffe's. What it says its data are must lie inside of it. */
#include "storage/importers/datum.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bpt__datum d;
    /* In memory of its own, so that a sanitizer sees a byte that is read behind it. */
    uint8_t *message = malloc(size ? size : 1);
    if (!message) abort();
    for (size_t i = 0; i < size; i++) message[i] = data[i];
    if (!bpt__datum_read(message, size, &d) && d.data &&
        (d.data < message || d.n_data > (size_t)(message + size - d.data)))
        abort();
    volatile uint8_t sum = 0;
    for (size_t i = 0; d.data && i < d.n_data && d.data + i < message + size; i++)
        sum = (uint8_t)(sum + d.data[i]);
    free(message);
    return 0;
}
