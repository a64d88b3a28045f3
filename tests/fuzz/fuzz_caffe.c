/* Any bytes as the data.mdb of an LMDB of Caffe's. The corpus has pages of 512 bytes, so that it is
 * small; LMDB itself makes larger ones. */
#include "tests/fuzz/fuzz_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], file[80];

static void remove_files(void) {
    unlink(file);
    rmdir(folder);
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/bpt-fuzz-XXXXXX");
    if (!mkdtemp(folder)) abort();
    snprintf(file, sizeof file, "%s/data.mdb", folder);
    atexit(remove_files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!folder[0]) make_folder();
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    fuzz_import_path("caffe", NULL, folder);
    return 0;
}
