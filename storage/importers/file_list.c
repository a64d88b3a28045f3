#include "storage/importers/file_list.h"

#include "base/checksum.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void bpt__file_list_free(bpt__file_list *list) {
    bpt_free(list->text);
    bpt_free(list->entries);
    *list = (bpt__file_list){0};
}

bpt_status bpt__file_list_add(bpt__file_list *list, const char *name, uint32_t label) {
    const size_t size = strlen(name) + 1;
    BPT_TRY(BPT_GROW("file names", list->n_text + size, &list->text, &list->text_capacity));
    BPT_TRY(BPT_GROW("file list", list->n + 1, &list->entries, &list->capacity));
    memcpy(list->text + list->n_text, name, size);
    list->entries[list->n++] = (bpt__file_entry){.name = list->n_text, .label = label};
    list->n_text += size;
    return BPT_OK;
}

uint64_t bpt__file_list_identify(const bpt__file_list *list) {
    uint64_t identity = list->n;
    for (size_t i = 0; i < list->n; i++) {
        const char *name = bpt__file_list_name(list, i);
        const uint64_t all[] = {identity, list->entries[i].label, bpt_checksum(name, strlen(name))};
        identity = bpt_checksum(all, sizeof all);
    }
    return identity;
}

static int compare_entries(const void *a, const void *b, void *text) {
    return strcmp((char *)text + ((const bpt__file_entry *)a)->name,
                  (char *)text + ((const bpt__file_entry *)b)->name);
}

void bpt__file_list_sort(bpt__file_list *list, size_t from) {
    if (list->n - from > 1)
        qsort_r(list->entries + from, list->n - from, sizeof *list->entries, compare_entries,
                list->text);
}
