/* Runs a fuzz target on files, and on every file with each of its bytes changed or its end cut.
 * usage: fuzz_NAME FILE...
 * For real fuzzing: tests/fuzz/fuzz, which links clang's libFuzzer instead of this file. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST = 1 << 16 };

static int replay(const char *path) {
    static uint8_t content[LARGEST];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    const size_t size = fread(content, 1, sizeof content, file);
    fclose(file);
    LLVMFuzzerTestOneInput(content, size);
    for (size_t at = 0; at < size; at++) {
        LLVMFuzzerTestOneInput(content, at);
        content[at] ^= (uint8_t)(1 << at % 8);
        LLVMFuzzerTestOneInput(content, size);
        content[at] ^= (uint8_t)(1 << at % 8) ^ 0xFF;
        LLVMFuzzerTestOneInput(content, size);
        content[at] ^= 0xFF;
    }
    return 0;
}

int main(int argc, char **argv) {
    int failures = argc < 2;
    for (int i = 1; i < argc; i++) failures += replay(argv[i]);
    printf("%d files replayed\n", argc - 1);
    return failures ? 1 : 0;
}
