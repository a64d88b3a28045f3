#include "tests/fuzz/fuzz_import.h"

#include "base/log.h"
#include "base/memory.h"
#include "storage/importers/importer.h"

#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_all(const bpt_importer *importer, const bpt_import_source *source) {
    bpt_import_plan plan;
    void *import;
    if (importer->open(source, &plan, &import) != BPT_OK) return;
    bpt_import_item item = {0};
    bpt_import_buffer buffer = {0};
    for (uint64_t i = 0; i < plan.count; i++) {
        bpt_import_image image;
        char name[BPT_IMPORT_NAME_SIZE];
        if (importer->next(import, &item) != BPT_OK) break;
        importer->describe(import, &item, name, sizeof name);
        if (strlen(name) >= sizeof name) abort();
        if (importer->load(import, &item, &buffer, &image) != BPT_OK) continue;
        if (image.label >= plan.n_classes) abort();
    }
    bpt_free(item.owned.bytes);
    bpt_free(buffer.bytes);
    importer->close(import);
}

void fuzz_import_path(const char *importer, const char *root, char *path) {
    const uint64_t live = bpt_memory_live();
    bpt_log_setup(0, BPT_LOG_ERROR); /* a warning for each input would drown what matters */
    read_all(bpt_importer_find(importer),
             &(bpt_import_source){.files = &path, .n_files = 1, .root = root});
    if (bpt_memory_live() != live) abort();
}

void fuzz_import(const char *importer, const char *root, const uint8_t *data, size_t size) {
    char path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fuzz_import_path(importer, root, path);
    close(fd);
}
