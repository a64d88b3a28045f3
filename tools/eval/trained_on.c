#include "tools/eval/trained_on.h"

#include <string.h>

bpt_status bpt_trained_on_fit(const bpt_dataset *trained, bpt_dataset *dataset) {
    const bpt_dataset_info *wanted = bpt_dataset_describe(trained);
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    bpt_status status;
    if (info->C != wanted->C) {
        status = bpt_fail(BPT_EUSAGE, "%s holds images of %u channel%s, and %s of %u", info->path,
                          info->C, info->C == 1 ? "" : "s", wanted->path, wanted->C);
        bpt_hint("ingest them with --channels %u", wanted->C);
        return status;
    }
    status = bpt_dataset_bring_to(dataset, wanted->H, wanted->W);
    if (status != BPT_OK)
        bpt_hint("%s", wanted->encoded
                           ? "give --input-size as in training, or ingest them at another size"
                           : "ingest them at the size of those that were trained on"
                             ", by the same options");
    return status;
}

bool bpt_trained_on_same_classes(const bpt_dataset *trained, const bpt_dataset *dataset) {
    const bpt_dataset_info *a = bpt_dataset_describe(trained), *b = bpt_dataset_describe(dataset);
    if (a->n_classes != b->n_classes) return false;
    for (uint32_t i = 0; i < a->n_classes; i++)
        if (strcmp(a->classes[i], b->classes[i]) != 0) return false;
    return true;
}
