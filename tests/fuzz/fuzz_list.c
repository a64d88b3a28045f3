/* Any bytes as a list of images. The images themselves are not there. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_import("list", "/proc/self/fdinfo/no-such-folder", data, size);
    return 0;
}
