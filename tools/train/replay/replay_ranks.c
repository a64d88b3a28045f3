#include "tools/train/replay/replay_ranks.h"

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "inner/cpu/cpu_library.h"
#include "tools/precision.h"
#include "tools/train/run/run_folder.h"

#include <inttypes.h>
#include <string.h>

/* ---- the summary ---- */

/* @param[out] doc to be freed; NULL: there is no summary, of a run that ended before it
 * @return BPT_OK, as bpt_json_load() but for BPT_ENOENT */
static bpt_status load(const char *run, bpt_json_doc **doc) {
    char *path;
    *doc = NULL;
    BPT_TRY(bpt_strf(&path, "%s/summary.json", run));
    const bpt_status status = bpt_json_load(path, (size_t)1 << 30, doc);
    bpt_free(path);
    return status == BPT_ENOENT ? BPT_OK : status;
}

/* @return what it says of each rank; NULL: nothing */
static const bpt_json *list_of(const bpt_json_doc *doc) {
    const bpt_json *list = doc ? bpt_json_find(bpt_json_root(doc), "ranks") : NULL;
    return list && bpt_json_is_array(list) ? list : NULL;
}

/* ---- on a device ---- */

static bpt_status refuse_device(const char *run, size_t rank, const char *device) {
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "%s cannot be replayed: rank %zu computed on %s, and a replay computes on cores, which "
        "round otherwise",
        run, rank, device);
    bpt_hint("train with --device cpu to have a run that can be replayed");
    return status;
}

static bpt_status look_at_summary(const char *run, const bpt_json_doc *doc) {
    const bpt_json *list = list_of(doc);
    for (size_t i = 0; list && i < bpt_json_size(list); i++) {
        const char *device;
        if (bpt_json_get_text(doc, bpt_json_at(list, i), "device", &device) != BPT_OK) continue;
        if (strcmp(device, "cpu") != 0) return refuse_device(run, i, device);
    }
    return BPT_OK;
}

/* Of a run that ended before its summary. */
static bpt_status look_at_choices(const char *run) {
    unsigned rank;
    return bpt_run_folder_had_gpu(run, &rank) ? refuse_device(run, rank, "a GPU") : BPT_OK;
}

bpt_status bpt_replay_check_devices(const char *run) {
    bpt_json_doc *doc;
    BPT_TRY(load(run, &doc));
    const bpt_status status = look_at_summary(run, doc);
    bpt_json_doc_free(doc);
    return status == BPT_OK ? look_at_choices(run) : status;
}

/* ---- on cores ---- */

/* @param precision that the summary says: what the choice of the rank had come to
 * @param[out] like a choice that comes to it here, in whatever way this processor can */
static bool find_precision(const char *precision, bpt_precision *like) {
    static const bpt_precision of_cores[] = {BPT_PRECISION_FP32, BPT_PRECISION_BF16_EMULATED};
    for (size_t i = 0; i < sizeof of_cores / sizeof *of_cores; i++)
        if (strcmp(precision, bpt_precision_text(of_cores[i], NULL)) == 0) {
            *like = of_cores[i];
            return true;
        }
    return false;
}

/* @param[in,out] precision by config.yaml; by the summary if that says it */
static bpt_status read_precision(const char *run, uint32_t rank, const bpt_json_doc *doc,
                                 const bpt_json *entry, bpt_precision *precision) {
    const char *text;
    if (!bpt_json_find(entry, "precision")) return BPT_OK;
    BPT_TRY(bpt_json_get_text(doc, entry, "precision", &text));
    if (find_precision(text, precision)) return BPT_OK;
    return bpt_fail(BPT_EDATA,
                    "%s/summary.json: \"precision\" of rank %" PRIu32
                    " is \"%.20s\", which is none of cores",
                    run, rank, text);
}

static bpt_status check_here(const char *run, uint32_t rank, bpt_precision precision) {
    if (bpt_precision_check(precision, NULL) == BPT_OK) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE,
                                       "%s cannot be replayed here: rank %" PRIu32
                                       " computed in %s, and this processor has no "
                                       "instructions for that",
                                       run, rank, bpt_precision_text(precision, NULL));
    bpt_hint("replay it on a machine like that of the rank");
    return status;
}

/* Kernels of other instructions sum in another order. */
static bpt_status compare_kernels(const bpt_json_doc *doc, const bpt_json *entry, uint32_t rank) {
    char here[80];
    const char *there;
    if (!bpt_json_find(entry, "kernels")) return BPT_OK;
    BPT_TRY(bpt_json_get_text(doc, entry, "kernels", &there));
    bpt_cpu_kernels(here, sizeof here);
    if (strcmp(there, here) != 0)
        bpt_warn("rank %" PRIu32
                 " computed with other kernels (%.79s) than this processor has (%s): "
                 "last bits may differ",
                 rank, there, here);
    return BPT_OK;
}

/* @param entry of the rank in the summary; NULL: there is none */
static bpt_status read_rank(const bpt_train_options *o, uint32_t rank, const bpt_json_doc *doc,
                            const bpt_json *entry, bpt_replay_rank *out) {
    bpt_precision precision = (bpt_precision)o->precision;
    bool tuned = o->tuned != NULL;
    if (entry && bpt_json_find(entry, "tuned"))
        BPT_TRY(bpt_json_get_bool(doc, entry, "tuned", &tuned));
    if (entry) BPT_TRY(read_precision(o->replay, rank, doc, entry, &precision));
    if (entry) BPT_TRY(compare_kernels(doc, entry, rank));
    BPT_TRY(check_here(o->replay, rank, precision));
    *out = (bpt_replay_rank){.tuned = tuned, .activations = bpt_precision_type(precision, NULL)};
    return BPT_OK;
}

bpt_status bpt_replay_ranks_read(const bpt_train_options *o, uint32_t n, bpt_replay_rank *ranks) {
    bpt_json_doc *doc;
    bpt_status status = BPT_OK;
    BPT_TRY(load(o->replay, &doc));
    const bpt_json *list = list_of(doc);
    for (uint32_t r = 0; status == BPT_OK && r < n; r++)
        status = read_rank(o, r, doc, list ? bpt_json_at(list, r) : NULL, &ranks[r]);
    bpt_json_doc_free(doc);
    return status;
}
