/* seal_checkpoint FOLDER SERIAL NAME...: writes DONE anew, after a test has changed files. */
#include "tools/train/run/checkpoint_files.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_FILES = 16 };

static bpt_status seal(const char *folder, uint64_t serial, char **names, size_t n) {
    bpt_checkpoint_file files[MAX_FILES];
    for (size_t i = 0; i < n; i++) BPT_TRY(bpt_checkpoint_measure(folder, names[i], &files[i]));
    return bpt_checkpoint_write_done(folder, serial, files, n);
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 3 + MAX_FILES) return bpt_status_exit(BPT_EUSAGE);
    const bpt_status status =
        seal(argv[1], strtoull(argv[2], NULL, 10), argv + 3, (size_t)argc - 3);
    if (status != BPT_OK) fprintf(stderr, "%s\n", bpt_error_last()->text);
    return bpt_status_exit(status);
}
