#include "tools/train/data/dataset_identity.h"

#include "base/checksum.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void print_sources(const bpt_intake *intake, FILE *out) {
    for (size_t i = 0; i < intake->n_sources; i++) fprintf(out, " %s", intake->sources[i]);
}

static void print_split(const bpt_dataset_info *info, const bpt_split *split, FILE *out) {
    fprintf(out, "split %s %u %s %llu", split->name, split->count, split->intakes->importer,
            (unsigned long long)split->intakes->seed);
    for (uint32_t k = 0; k < info->n_classes; k++)
        fprintf(out, " %llu", (unsigned long long)split->per_class[k]);
    for (uint32_t c = 0; c < info->C; c++) fprintf(out, " %a %a", split->mean[c], split->std[c]);
    print_sources(split->intakes, out);
    for (size_t p = 1; p < split->n_intakes; p++) {
        const bpt_intake *intake = &split->intakes[p];
        fprintf(out, " + %u %s %llu", intake->count, intake->importer,
                (unsigned long long)intake->seed);
        print_sources(intake, out);
    }
    fputc('\n', out);
}

bpt_status bpt_dataset_identify(const bpt_dataset_info *info, uint64_t *identity) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return bpt_fail(BPT_ENOMEM, "cannot describe %s", info->path);
    fprintf(memory, "%u %ux%ux%u %s\n", info->format, info->C, info->H, info->W, info->encoding);
    for (uint32_t k = 0; k < info->n_classes; k++) fprintf(memory, "class %s\n", info->classes[k]);
    for (size_t i = 0; i < info->n_splits; i++) print_split(info, &info->splits[i], memory);
    const bool written = fclose(memory) == 0;
    if (written) *identity = bpt_checksum(text, size);
    if (written && *identity == 0) *identity = 1;
    free(text); /* the C library's own memory */
    return written ? BPT_OK : bpt_fail(BPT_ENOMEM, "cannot describe %s", info->path);
}
