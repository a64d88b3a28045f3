#include "tools/plan/run_pace.h"

#include "base/json.h"
#include "base/memory.h"

#include <string.h>

enum { SUMMARY_BYTES = 1 << 26 };

/* Looks which of the ways it is. */
static bpt_status find_way(const char *run, const char *update, const char *partition,
                           bpt_way *way) {
    for (int i = 0; i < BPT_PLAN_WAYS; i++) {
        *way = bpt_plan_ways()[i];
        const bool alone = way->update == BPT_UPDATE_LOCAL;
        if (strcmp(update, bpt_update_choice_name(way->update)) == 0 &&
            (alone || strcmp(partition, bpt_partition_choice_name(way->partition)) == 0))
            return BPT_OK;
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%s learnt by %s with partition %s, of which nothing is foretold", run,
                 update, partition);
    bpt_hint("compare a run of agwu or sgwu with idpa, allreduce, or one rank");
    return status;
}

/* Evaluations are in the seconds of a run, of all ranks that take part alike. */
static bpt_status read_pace(const bpt_json_doc *doc, const bpt_json *root, bpt_run_pace *pace) {
    const bpt_json *ranks;
    double samples, seconds, eval_s;
    BPT_TRY(bpt_json_get_array(doc, root, "ranks", &ranks));
    BPT_TRY(bpt_json_get_real(doc, root, "samples", &samples));
    BPT_TRY(bpt_json_get_real(doc, root, "seconds", &seconds));
    BPT_TRY(bpt_json_get_real(doc, bpt_json_at(ranks, 0), "eval_s", &eval_s));
    if (!(samples > 0) || !(seconds > eval_s) || !(eval_s >= 0))
        return bpt_fail(BPT_EDATA, "no samples were trained on in %g s, %g of which evaluated",
                        seconds, eval_s);
    pace->n_ranks = (uint32_t)bpt_json_size(ranks);
    pace->images_per_s = samples / (seconds - eval_s);
    return BPT_OK;
}

static bpt_status check_model(const char *run, const char *there, const char *here) {
    if (strcmp(there, here) == 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s trained %s, this is %s", run, there, here);
    bpt_hint("compare a run of the same model");
    return status;
}

/* Where a layer is placed at a rank, all others send it what comes before. Earlier versions froze
 * none, and do not say so. */
static bpt_status check_roles(const char *run, const bpt_json_doc *doc, const bpt_json *root) {
    const bpt_json *ranks;
    uint64_t servers, border_bytes, frozen_bytes = 0;
    BPT_TRY(bpt_json_get_u64(doc, root, "servers", 0, UINT32_MAX, &servers));
    if (bpt_json_find(root, "frozen_bytes"))
        BPT_TRY(bpt_json_get_u64(doc, root, "frozen_bytes", 0, INT64_MAX, &frozen_bytes));
    BPT_TRY(bpt_json_get_array(doc, root, "ranks", &ranks));
    BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(ranks, 0), "border_bytes_sent", 0, INT64_MAX,
                             &border_bytes));
    if (servers == 0 && border_bytes == 0 && frozen_bytes == 0) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s had %s, of which nothing is foretold", run,
                                       servers        ? "servers"
                                       : border_bytes ? "layers placed at one rank"
                                                      : "frozen layers");
    bpt_hint("compare a run whose ranks all train all layers");
    return status;
}

static bpt_status read_summary(const char *run, const bpt_json_doc *doc, const char *model,
                               bpt_run_pace *pace) {
    const bpt_json *root = bpt_json_root(doc);
    const char *there, *update, *partition;
    BPT_TRY(bpt_json_get_text(doc, root, "model", &there));
    BPT_TRY(bpt_json_get_text(doc, root, "update", &update));
    BPT_TRY(bpt_json_get_text(doc, root, "partition", &partition));
    BPT_TRY(check_model(run, there, model));
    BPT_TRY(find_way(run, update, partition, &pace->way));
    BPT_TRY(check_roles(run, doc, root));
    return read_pace(doc, root, pace);
}

bpt_status bpt_run_pace_read(const char *run, const char *model, bpt_run_pace *pace) {
    char *path;
    bpt_json_doc *doc = NULL;
    BPT_TRY(bpt_strf(&path, "%s/summary.json", run));
    bpt_status status = bpt_json_load(path, SUMMARY_BYTES, &doc);
    bpt_free(path);
    if (status == BPT_OK) status = read_summary(run, doc, model, pace);
    if (status == BPT_ENOENT || status == BPT_EDATA)
        bpt_hint("name the folder (--output) of a run of bpt-train that has ended");
    bpt_json_doc_free(doc);
    return status;
}

const bpt_plan_row *bpt_run_pace_find(const bpt_plan *plan, const bpt_run_pace *pace) {
    for (size_t i = 0; i < plan->n_sizes; i++)
        if (plan->sizes[i].n_ranks == pace->n_ranks)
            return bpt_plan_find(&plan->sizes[i], pace->way);
    return NULL;
}
