#include "tools/ingest/ingest_summary.h"

#include "base/log.h"
#include "base/text.h"
#include "storage/dataset/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void report_classes(const bpt_dataset_info *info, const bpt_split *split) {
    uint32_t n_empty = 0, first_empty = 0;
    for (uint32_t i = info->n_classes; i-- > 0;)
        if (split->per_class[i] == 0) {
            n_empty++;
            first_empty = i;
        }
    char line[512] = "", item[80], name[41];
    uint32_t i = 0;
    for (; i < info->n_classes && strlen(line) < 400; i++) {
        bpt_text_escape(info->classes[i], name, sizeof name);
        snprintf(item, sizeof item, "%s %" PRIu64, name, split->per_class[i]);
        bpt_list_add(line, sizeof line, item);
    }
    bpt_info("%s: per class: %s%s", split->name, line, i == info->n_classes ? "" : ", ...");
    if (n_empty == 0) return;
    bpt_text_escape(info->classes[first_empty], name, sizeof name);
    bpt_warn("%s: %u of %u classes have no images, the first of them is %s", split->name, n_empty,
             info->n_classes, name);
}

/* @param[out] text shape [size]; "" where nothing was passed over */
static void describe_bad(const bpt_bad_report *bad, char *text, size_t size) {
    text[0] = '\0';
    if (bad && bad->n > 0)
        snprintf(text, size, ", %" PRIu64 " bad image%s passed over, listed in %s", bad->n,
                 bad->n == 1 ? "" : "s", bad->path);
}

void bpt_ingest_size_text(const bpt_dataset_info *info, const bpt_split *split, char *text,
                          size_t size) {
    const bpt_extent *e = &split->extent;
    if (info->encoded)
        snprintf(text, size, "%u channels, %u..%ux%u..%u (HxW), %" PRIu64 " bytes of JPEG", info->C,
                 e->least_H, e->most_H, e->least_W, e->most_W, e->bytes);
    else
        snprintf(text, size, "%ux%ux%u (CxHxW)", info->C, info->H, info->W);
}

bpt_status bpt_ingest_summary(const char *path, const char *name, const bpt_bad_report *bad,
                              uint64_t n_found, double seconds) {
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(path, &dataset));
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const bpt_split *split;
    const bpt_status status = bpt_dataset_find(dataset, name, &split);
    if (status == BPT_OK) {
        char passed_over[320];
        describe_bad(bad, passed_over, sizeof passed_over);
        char size[128], added[32] = "";
        bpt_ingest_size_text(info, split, size, sizeof size);
        const uint32_t n = split->intakes[split->n_intakes - 1].count;
        if (split->n_intakes > 1) snprintf(added, sizeof added, " added, %u in all,", split->count);
        bpt_info(
            "%s: %u image%s%s of %s in %u class%s stored in %s%s, %.1f s, "
            "%.0f img/s",
            split->name, n, n == 1 ? "" : "s", added, size, info->n_classes,
            info->n_classes == 1 ? "" : "es", path, passed_over, seconds,
            (double)(n - n_found) / seconds);
        report_classes(info, split);
    }
    bpt_dataset_close(dataset);
    return status;
}
