#include "tests/storage/made_dataset.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

made_place made_place_create(void) {
    made_place place;
    /* In memory if possible: hundreds of flushes to a disk take minutes and show nothing more. */
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(place.directory, sizeof place.directory, "%s/bpt-storage-XXXXXX", parent);
    if (!mkdtemp(place.directory)) {
        perror(place.directory);
        exit(1);
    }
    snprintf(place.dataset, sizeof place.dataset, "%s/data", place.directory);
    return place;
}

void made_place_remove(const made_place *place) {
    bpt_dir_remove(place->directory);
}

uint8_t made_pixel(uint32_t salt, uint32_t i, size_t p) {
    uint32_t h = salt * 2654435761u ^ i * 40503u ^ (uint32_t)p * 97u;
    h ^= h >> 15;
    return (uint8_t)(h * 2246822519u >> 24);
}

uint32_t made_label(uint32_t salt, uint32_t i, uint32_t n_classes) {
    return (salt + i * 7) % n_classes;
}

bpt_writer_options made_options(const char *split, uint32_t C, uint32_t H, uint32_t W) {
    return (bpt_writer_options){
        .split = split, .C = C, .H = H, .W = W, .n_classes = 3, .importer = "test"};
}

bpt_status made_append(bpt_writer *writer, const bpt_writer_options *o, uint32_t salt,
                       uint32_t from, uint32_t to) {
    const size_t size = (size_t)o->C * o->H * o->W;
    uint8_t *pixels = malloc(size);
    if (!pixels) return BPT_ENOMEM;
    bpt_status status = BPT_OK;
    for (uint32_t i = from; i < to && status == BPT_OK; i++) {
        for (size_t p = 0; p < size; p++) pixels[p] = made_pixel(salt, i, p);
        status = bpt_writer_append(writer, pixels, made_label(salt, i, o->n_classes));
    }
    free(pixels);
    return status;
}

bpt_status made_split(const char *path, const bpt_writer_options *o, uint32_t salt, uint32_t n) {
    bpt_writer *writer;
    BPT_TRY(bpt_writer_open(path, o, &writer));
    bpt_status status = made_append(writer, o, salt, 0, n);
    if (status == BPT_OK) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    return status;
}

uint32_t made_equal(const bpt_dataset *dataset, const bpt_split *split, uint32_t salt) {
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const size_t size = (size_t)info->C * info->H * info->W;
    for (uint32_t i = 0; i < split->count; i++) {
        const uint8_t *pixels;
        uint32_t label;
        if (bpt_dataset_get(dataset, split, i, &pixels, &label) != BPT_OK) return i;
        if (label != made_label(salt, i, 3)) return i;
        for (size_t p = 0; p < size; p++)
            if (pixels[p] != made_pixel(salt, i, p)) return i;
    }
    return split->count;
}
