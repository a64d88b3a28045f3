/* A dataset whose description lies though its checksums are right, and whose file has other words
 * in it: it is read or refused as damaged, and nothing else. An input is
 *
 *     KIND  schema 0  description of the split 0  patches
 *
 * KIND is a character (r, e or a: a raw dataset, an encoded one, one that was appended to); an
 * empty text leaves the one that is there; a patch is the number of a word (2 bytes) and what it
 * becomes (8 bytes). */
#include "base/file.h"
#include "base/log.h"
#include "storage/dataset/dataset.h"
#include "tests/storage/made_dataset.h"
#include "tests/storage/made_encoded.h"
#include "tests/storage/made_entry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_KINDS = 3, MAX_TEXT = 1 << 12, PATCH = 10, MAX_PATCHES = 8 };

static made_place place;
static char file[100];
static struct {
    char *bytes;
    size_t size;
} origins[N_KINDS]; /* data.mdb as a writer made it */

static void need(bool right) {
    if (!right) abort();
}

static void make_origin(size_t kind) {
    bpt_writer_options raw = made_options("train", 1, 8, 8);
    const bpt_writer_options encoded = made_encoded_options("train", 1);
    need((kind == 1 ? made_encoded_split(place.dataset, &encoded, 3)
                    : made_split(place.dataset, &raw, 1, 20)) == BPT_OK);
    raw.append = true;
    if (kind == 2) need(made_split(place.dataset, &raw, 2, 10) == BPT_OK);
    need(bpt_file_read(file, 1 << 20, &origins[kind].bytes, &origins[kind].size) == BPT_OK);
    need(unlink(file) == 0);
}

static void remove_place(void) {
    made_place_remove(&place);
}

static void begin(void) {
    bpt_log_setup(0, BPT_LOG_ERROR);
    place = made_place_create();
    atexit(remove_place);
    snprintf(file, sizeof file, "%s/data.mdb", place.dataset);
    for (size_t kind = 0; kind < N_KINDS; kind++) make_origin(kind);
}

static void lay_origin(size_t kind) {
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(fd >= 0);
    need(write(fd, origins[kind].bytes, origins[kind].size) == (ssize_t)origins[kind].size);
    close(fd);
}

/* @return bytes of the text and its end */
static size_t put_text(const char *key, const uint8_t *data, size_t size) {
    char text[MAX_TEXT + 1];
    const size_t length = strnlen((const char *)data, size < MAX_TEXT ? size : MAX_TEXT);
    memcpy(text, data, length);
    text[length] = '\0';
    if (length > 0) need(made_entry_put(place.dataset, key, text));
    return length < size ? length + 1 : size;
}

static void patch(const uint8_t *data, size_t size) {
    const int fd = open(file, O_WRONLY | O_CLOEXEC);
    need(fd >= 0);
    for (size_t i = 0; i < MAX_PATCHES && size >= PATCH; i++, data += PATCH, size -= PATCH) {
        const off_t word = data[0] | data[1] << 8;
        need(pwrite(fd, data + 2, sizeof(uint64_t), word * (off_t)sizeof(uint64_t)) ==
             sizeof(uint64_t));
    }
    close(fd);
}

static bpt_status checked(bpt_status status) {
    const int ends = bpt_status_exit(status);
    if (ends != 0 && ends != 3 && status != BPT_ENOMEM) {
        fprintf(stderr, "%s\n", bpt_error_last()->text);
        abort();
    }
    return status;
}

static void read_split(const bpt_dataset *dataset, const bpt_split *split) {
    enum { MANY = 64 };
    const bool encoded = bpt_dataset_describe(dataset)->encoded;
    for (uint32_t i = 0; i < split->count && i < MANY; i++) {
        const uint8_t *pixels;
        uint32_t label;
        bpt_record record;
        checked(encoded ? bpt_dataset_get_record(dataset, split, i, &record, &label)
                        : bpt_dataset_get(dataset, split, i, &pixels, &label));
    }
}

static void read_all(void) {
    bpt_dataset *dataset;
    if (checked(bpt_dataset_open(place.dataset, &dataset)) != BPT_OK) return;
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    for (size_t s = 0; s < info->n_splits; s++) read_split(dataset, &info->splits[s]);
    bpt_dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool begun;
    uint64_t n_sound;
    if (!begun) begin();
    begun = true;
    if (size == 0) return 0;
    lay_origin(*data == 'a' ? 2 : *data == 'e');
    size_t at = 1;
    at += put_text("dataset", data + at, size - at);
    at += put_text("split/train", data + at, size - at);
    patch(data + at, size - at);
    read_all();
    checked(bpt_dataset_verify(place.dataset, NULL, NULL, &n_sound));
    return 0;
}
