#include "storage/importers/importer.h"

#include <string.h>

extern const bpt_importer bpt__import_idx;
extern const bpt_importer bpt__import_cifar;
extern const bpt_importer bpt__import_glyphs;
extern const bpt_importer bpt__import_folder;
extern const bpt_importer bpt__import_list;
extern const bpt_importer bpt__import_caffe;
extern const bpt_importer bpt__import_webdataset;

static const bpt_importer *const registry[] = {
    &bpt__import_idx,  &bpt__import_cifar, &bpt__import_glyphs,     &bpt__import_folder,
    &bpt__import_list, &bpt__import_caffe, &bpt__import_webdataset,
};

const bpt_importer *bpt_importer_at(size_t i) {
    return i < sizeof registry / sizeof *registry ? registry[i] : NULL;
}

const bpt_importer *bpt_importer_find(const char *name) {
    for (size_t i = 0; bpt_importer_at(i); i++)
        if (strcmp(registry[i]->name, name) == 0) return registry[i];
    return NULL;
}
