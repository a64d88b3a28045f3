#include "tests/storage/made_files.h"

#include "base/file.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char directory[64];

int made_files_set_up(void **state) {
    (void)state;
    strcpy(directory, "/tmp/bpt-files-XXXXXX");
    return mkdtemp(directory) ? 0 : 1;
}

int made_files_tear_down(void **state) {
    (void)state;
    bpt_dir_remove(directory);
    return bpt_memory_live() == 0 ? 0 : 1;
}

char *made_path(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

void made_bytes(const char *name, const void *data, size_t size) {
    char *path = made_path(name), *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(bpt_dir_create(path, false), BPT_OK);
    *slash = '/';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void made_text(const char *name, const char *text) {
    made_bytes(name, text, strlen(text));
}

static void keep(const bpt_importer *importer, void *import, const bpt_import_item *item,
                 made_item *out) {
    bpt_import_buffer buffer = {0};
    bpt_import_image image;
    char name[BPT_IMPORT_NAME_SIZE];
    importer->describe(import, item, name, sizeof name);
    const size_t n = strlen(directory) + 1;
    *out = (made_item){.status = importer->load(import, item, &buffer, &image)};
    const char *text = out->status == BPT_OK ? name : bpt_error_last()->text;
    if (out->status == BPT_OK && strncmp(text, directory, n - 1) == 0) text += n;
    snprintf(out->name, sizeof out->name, "%s%.510s", out->status == BPT_OK ? "" : "!", text);
    if (out->status == BPT_OK) {
        out->label = image.label;
        out->encoded = image.encoded;
        out->size = image.size;
        memcpy(out->head, image.bytes, image.size < 16 ? image.size : 16);
    }
    bpt_free(buffer.bytes);
}

bpt_status made_import(const char *name, const bpt_import_source *source, made_item *items,
                       size_t max_items, size_t *n, bpt_import_plan *plan) {
    const bpt_importer *importer = bpt_importer_find(name);
    void *import;
    bpt_import_item item = {0};
    *n = 0;
    BPT_TRY(importer->open(source, plan, &import));
    bpt_status status = BPT_OK;
    for (uint64_t i = 0; i < plan->count && status == BPT_OK; i++) {
        status = importer->next(import, &item);
        if (status != BPT_OK) break;
        assert_int_equal(item.number, i);
        assert_true(*n < max_items);
        keep(importer, import, &item, &items[(*n)++]);
    }
    bpt_free(item.owned.bytes);
    plan->class_names = NULL; /* the import's own */
    importer->close(import);
    return status;
}

void made_refused(const char *importer, const bpt_import_source *source, bpt_status wanted,
                  const char *text) {
    made_item items[16];
    size_t n;
    bpt_import_plan plan;
    const bpt_status status = made_import(importer, source, items, 16, &n, &plan);
    if (status != wanted || !strstr(bpt_error_last()->text, text))
        print_error("%s: %s\n", bpt_status_name(status), bpt_error_last()->text);
    assert_int_equal(status, wanted);
    assert_non_null(strstr(bpt_error_last()->text, text));
}
