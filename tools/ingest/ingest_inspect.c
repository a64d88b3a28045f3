/* bpt-ingest info and verify: what a dataset holds, and whether it is sound. */
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "storage/dataset/dataset.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/ingest/ingest_summary.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct info_options {
    bool json;
} info_options;

static const bpt_option info_table[] = {
    {.name = "json",
     .type = BPT_OPTION_FLAG,
     .offset = offsetof(info_options, json),
     .help = "print one JSON object: format, shape [C,H,W], encoding, classes, and\nof each "
             "split name, count, per_class, mean and std (per channel, of\npixels scaled to "
             "0..1); encoded images have no H and W but, of each\nsplit, heights and widths "
             "(least and most) and bytes"},
};

static const bpt_command info_usage = {
    .name = "bpt-ingest info",
    .synopsis = "DATASET [--json]",
    .summary = "Prints what a dataset holds.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = info_table,
    .n_options = sizeof info_table / sizeof *info_table,
    .min_operands = 1,
    .max_operands = 1,
};

typedef struct verify_options {
    bool fast;
} verify_options;

static const bpt_option verify_table[] = {
    {.name = "fast",
     .type = BPT_OPTION_FLAG,
     .offset = offsetof(verify_options, fast),
     .help = "check the structure of the file and the schema only, not the images: a\nmoment, "
             "whatever the size"},
};

static const bpt_command verify_usage = {
    .name = "bpt-ingest verify",
    .synopsis = "DATASET [--fast]",
    .summary =
        "Reads all of a dataset and checks it: structure, checksums, places, labels, counts.",
    .epilogue = BPT_INGEST_EXIT_STATUS,
    .options = verify_table,
    .n_options = sizeof verify_table / sizeof *verify_table,
    .min_operands = 1,
    .max_operands = 1,
};

/* ---- info ---- */

static void put_reals(bpt_json_writer *w, const char *key, const double *values, uint32_t n) {
    bpt_json_open_array(w, key);
    for (uint32_t i = 0; i < n; i++) bpt_json_put_real(w, NULL, values[i]);
    bpt_json_close_array(w);
}

static void put_range(bpt_json_writer *w, const char *key, uint32_t least, uint32_t most) {
    bpt_json_open_array(w, key);
    bpt_json_put_u64(w, NULL, least);
    bpt_json_put_u64(w, NULL, most);
    bpt_json_close_array(w);
}

static void put_split(bpt_json_writer *w, const bpt_dataset_info *info, const bpt_split *split) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "name", split->name);
    bpt_json_put_u64(w, "count", split->count);
    bpt_json_open_array(w, "per_class");
    for (uint32_t i = 0; i < info->n_classes; i++) bpt_json_put_u64(w, NULL, split->per_class[i]);
    bpt_json_close_array(w);
    put_reals(w, "mean", split->mean, info->C);
    put_reals(w, "std", split->std, info->C);
    if (info->encoded) {
        put_range(w, "heights", split->extent.least_H, split->extent.most_H);
        put_range(w, "widths", split->extent.least_W, split->extent.most_W);
        bpt_json_put_u64(w, "bytes", split->extent.bytes);
    }
    bpt_json_close_object(w);
}

static void put_side(bpt_json_writer *w, uint32_t side) {
    if (side > 0)
        bpt_json_put_u64(w, NULL, side);
    else
        bpt_json_put_null(w, NULL);
}

static bpt_status print_json(const bpt_dataset_info *info) {
    bpt_json_writer w = {0};
    bpt_json_open_object(&w, NULL);
    bpt_json_put_u64(&w, "format", info->format);
    bpt_json_open_array(&w, "shape");
    bpt_json_put_u64(&w, NULL, info->C);
    put_side(&w, info->H);
    put_side(&w, info->W);
    bpt_json_close_array(&w);
    bpt_json_put_text(&w, "encoding", info->encoding);
    bpt_json_open_array(&w, "classes");
    for (uint32_t i = 0; i < info->n_classes; i++) bpt_json_put_text(&w, NULL, info->classes[i]);
    bpt_json_close_array(&w);
    bpt_json_open_array(&w, "splits");
    for (size_t s = 0; s < info->n_splits; s++) put_split(&w, info, &info->splits[s]);
    bpt_json_close_array(&w);
    bpt_json_close_object(&w);
    const char *text;
    size_t length;
    const bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) puts(text);
    bpt_json_free(&w);
    return status;
}

enum { SHOWN_SIZE = 512 }; /* of a name, which anybody may have chosen */

/* How it was made; where images were appended, each time and how many. */
static void print_origins(const bpt_split *split) {
    char shown[SHOWN_SIZE];
    for (size_t p = 0; p < split->n_intakes; p++) {
        const bpt_intake *intake = &split->intakes[p];
        printf("\n  %s by %s", p ? "appended" : "made", intake->importer);
        if (intake->n_sources == 0 || intake->seed != 0) printf(", seed %" PRIu64, intake->seed);
        for (size_t i = 0; i < intake->n_sources; i++) {
            bpt_text_escape(intake->sources[i], shown, sizeof shown);
            printf("%s %s", i ? "," : " from", shown);
        }
        if (split->n_intakes > 1)
            printf(": %u image%s", intake->count, intake->count == 1 ? "" : "s");
    }
}

static void print_split(const bpt_dataset_info *info, const bpt_split *split) {
    char shown[SHOWN_SIZE];
    printf("\nsplit %s: %u image%s", split->name, split->count, split->count == 1 ? "" : "s");
    if (info->encoded) {
        bpt_ingest_size_text(info, split, shown, sizeof shown);
        printf(" of %s", shown);
    }
    printf("\n  mean ");
    for (uint32_t c = 0; c < info->C; c++) printf(" %.4f", split->mean[c]);
    printf("\n  std  ");
    for (uint32_t c = 0; c < info->C; c++) printf(" %.4f", split->std[c]);
    print_origins(split);
    printf("\n    images  class\n"); /* names last: of these columns are no bytes */
    for (uint32_t i = 0; i < info->n_classes; i++) {
        bpt_text_escape(info->classes[i], shown, sizeof shown);
        printf("%10" PRIu64 "  %s\n", split->per_class[i], shown);
    }
}

static void print_text(const bpt_dataset_info *info) {
    char size[64];
    if (info->encoded)
        snprintf(size, sizeof size, "%u channels, each of its own size", info->C);
    else
        snprintf(size, sizeof size, "%ux%ux%u (CxHxW)", info->C, info->H, info->W);
    printf("dataset %s: format %u, %s images of %s, %u classes, %zu split%s\n", info->path,
           info->format, info->encoding, size, info->n_classes, info->n_splits,
           info->n_splits == 1 ? "" : "s");
    for (size_t s = 0; s < info->n_splits; s++) print_split(info, &info->splits[s]);
}

static bpt_status run_info(int argc, char **argv) {
    info_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&info_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    bpt_dataset *dataset = NULL;
    if (request != BPT_REQUEST_RUN) goto done;
    int n;
    BPT_TRY_GOTO(status, bpt_dataset_open(bpt_option_operands(set, &n)[0], &dataset), done);
    if (o.json)
        status = print_json(bpt_dataset_describe(dataset));
    else
        print_text(bpt_dataset_describe(dataset));
done:
    bpt_dataset_close(dataset);
    bpt_option_set_free(set);
    return status;
}

/* ---- verify ---- */

static void show(void *arg, uint64_t n_records, uint64_t n_total) {
    bpt_ingest_progress_show(arg, n_records, n_total);
}

static bpt_status verify(const char *path) {
    bpt_ingest_progress progress = bpt_ingest_progress_start("verified");
    uint64_t n_records;
    BPT_TRY(bpt_dataset_verify(path, show, &progress, &n_records));
    bpt_log_progress_end();
    printf("dataset %s is sound: %" PRIu64 " image%s checked in %.1f s\n", path, n_records,
           n_records == 1 ? "" : "s", bpt_clock_seconds_since(progress.start_ns));
    return BPT_OK;
}

/* To open a dataset is to check its structure and its schema. */
static bpt_status verify_fast(const char *path) {
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(path, &dataset));
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    uint64_t n_records = 0;
    for (size_t s = 0; s < info->n_splits; s++) n_records += info->splits[s].count;
    printf("the schema of dataset %s is sound: %" PRIu64 " image%s in %zu split%s, not read\n",
           path, n_records, n_records == 1 ? "" : "s", info->n_splits,
           info->n_splits == 1 ? "" : "s");
    bpt_dataset_close(dataset);
    return BPT_OK;
}

static bpt_status run_verify(int argc, char **argv) {
    verify_options o;
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(&verify_usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request == BPT_REQUEST_RUN) {
        int n;
        const char *path = bpt_option_operands(set, &n)[0];
        status = o.fast ? verify_fast(path) : verify(path);
    }
    bpt_option_set_free(set);
    return status;
}

const bpt_ingest_command bpt_ingest_info = {"info", &info_usage, run_info};
const bpt_ingest_command bpt_ingest_verify = {"verify", &verify_usage, run_verify};
