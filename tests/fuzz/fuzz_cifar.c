/* Any bytes as a file of CIFAR-10 or CIFAR-100. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_import("cifar", NULL, data, size);
    return 0;
}
