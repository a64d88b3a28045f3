/* The IDX importer on any bytes. Input: 2 bytes, big-endian: how many of the rest are the file of
 * images; what follows is the file of labels. */
#include "base/memory.h"
#include "storage/importers/importer.h"

#include <sys/mman.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_file(const uint8_t *data, size_t size, char *path, size_t path_size) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    return fd;
}

static void read_all(const bpt_import_source *source) {
    enum { LARGEST_IMAGE = 1 << 20 };
    const bpt_importer *idx = bpt_importer_find("idx");
    bpt_import_plan plan;
    void *import;
    if (idx->open(source, &plan, &import) != BPT_OK) return;
    const bool small = (size_t)plan.C * plan.H * plan.W <= LARGEST_IMAGE;
    bpt_import_item item = {0};
    bpt_import_buffer buffer = {0};
    for (uint64_t i = 0; small && i < plan.count; i++) {
        bpt_import_image image;
        if (idx->next(import, &item) != BPT_OK) break;
        if (idx->load(import, &item, &buffer, &image) != BPT_OK) break;
        if (image.label >= plan.n_classes) abort();
    }
    bpt_free(item.owned.bytes);
    bpt_free(buffer.bytes);
    idx->close(import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t n = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (n > size) n = size;
    char images[64], labels[64];
    const int images_fd = memory_file(data, n, images, sizeof images);
    const int labels_fd = memory_file(data + n, size - n, labels, sizeof labels);
    char *files[] = {images, labels};
    read_all(&(bpt_import_source){.files = files, .n_files = 2});
    close(images_fd);
    close(labels_fd);
    return 0;
}
