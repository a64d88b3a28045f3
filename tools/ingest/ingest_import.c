/* bpt-ingest idx, cifar, folder, list, caffe, webdataset, glyphs: from an importer into a writer.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/importers/import_stream.h"
#include "storage/importers/importer.h"
#include "storage/writer/writer.h"
#include "tools/ingest/append_check.h"
#include "tools/ingest/bad_report.h"
#include "tools/ingest/class_names.h"
#include "tools/ingest/ingest_commands.h"
#include "tools/ingest/ingest_options.h"
#include "tools/ingest/ingest_progress.h"
#include "tools/ingest/ingest_summary.h"
#include "tools/ingest/ingest_terms.h"
#include "tools/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An import under way. */
typedef struct job {
    const bpt_importer *importer;
    const bpt_ingest_options *o;
    bpt_import_source source;
    bpt_import_plan plan;
    bpt_class_names names;
    void *import;
    bpt_import_stream *stream;
    bpt_writer *writer; /* NULL until there is a good image: it tells the shape */
    bpt_bad_report bad;
    const char **source_names;
    char *source_text; /* what they point into */
    bpt_ingest_terms terms;
    uint64_t reading_ns; /* when the source began to be read */
    uint64_t begin;      /* items that an ingestion that was stopped is done with */
    uint64_t n_found;    /* images that it has stored */
} job;

static void end(job *j) {
    bpt_import_stream_close(j->stream);
    if (j->import) j->importer->close(j->import);
    bpt_writer_close(j->writer);
    bpt_bad_report_close(&j->bad);
    bpt_class_names_free(&j->names);
    bpt_ingest_terms_free(&j->terms);
    bpt_free(j->source_names);
    bpt_free(j->source_text);
}

/* The names of the files, without their folders: what is worth knowing on another machine. */
static bpt_status base_names(job *j) {
    size_t size = 0;
    for (size_t i = 0; i < j->source.n_files; i++) size += strlen(j->source.files[i]) + 1;
    BPT_TRY(BPT_NEW("source names", j->source.n_files, &j->source_names));
    BPT_TRY(bpt_alloc("source names", size, 1, (void **)&j->source_text));
    char *at = j->source_text;
    for (size_t i = 0; i < j->source.n_files; i++) {
        size_t length = strlen(j->source.files[i]);
        memcpy(at, j->source.files[i], length + 1);
        while (length > 1 && at[length - 1] == '/') at[--length] = '\0';
        const char *slash = strrchr(at, '/');
        j->source_names[i] = slash && slash[1] ? slash + 1 : at;
        at += length + 1;
    }
    return BPT_OK;
}

/* @param C, H, W of the images; 0 where they are to be found out */
static bpt_writer_options writer_options(const job *j, uint32_t C, uint32_t H, uint32_t W) {
    return (bpt_writer_options){
        .split = j->o->split,
        .replace = j->o->force,
        .append = j->o->append,
        .encoded = j->o->encoded,
        .C = C,
        .H = H,
        .W = W,
        .n_classes = j->plan.n_classes,
        .class_names = j->plan.class_names,
        .importer = j->importer->name,
        .sources = j->source_names,
        .n_sources = j->source.n_files,
        .seed = j->importer->draws ? j->source.seed : 0,
        .terms = j->terms.wanted,
        .origin = j->terms.origin,
        .reading_ns = j->reading_ns,
    };
}

static bpt_status open_writer(job *j, const bpt_import_record *first) {
    const bpt_writer_options options = writer_options(j, first->C, first->H, first->W);
    BPT_TRY(bpt_writer_open(j->o->out, &options, &j->writer));
    for (size_t at = 0; at < j->bad.n_early; at += strlen(j->bad.early + at) + 1)
        BPT_TRY(bpt_writer_note(j->writer, j->bad.early + at));
    return bpt_bad_report_begin(&j->bad);
}

static bpt_status check_interrupt(void) {
    return bpt_interrupt_check("the dataset is as it was before",
                               "run the same command again to start over");
}

static bpt_status take_bad(job *j, const bpt_error *error) {
    BPT_TRY(bpt_bad_report_add(&j->bad, error, !j->importer->draws));
    return j->writer ? bpt_writer_note(j->writer, error->text) : BPT_OK;
}

static bpt_status take_record(job *j) {
    bpt_import_record record;
    const bpt_status status = bpt_import_stream_next(j->stream, &record);
    /* The source breaks off, or its images do not go together: it will be another one, or other
     * options, that come to an end. */
    if (bpt_status_exit(status) == bpt_status_exit(BPT_EDATA) && j->writer)
        bpt_writer_discard(j->writer);
    BPT_TRY(status);
    if (record.error) return take_bad(j, record.error);
    if (!j->writer) BPT_TRY(open_writer(j, &record));
    return record.pixels ? bpt_writer_append(j->writer, record.pixels, record.label)
                         : bpt_writer_append_record(j->writer, &record.file, record.label);
}

static bpt_status take_records(job *j) {
    char verb[128];
    snprintf(verb, sizeof verb, "%s: stored", j->o->split);
    bpt_ingest_progress progress = bpt_ingest_progress_start(verb);
    bpt_status status = BPT_OK;
    const uint64_t n = j->plan.count - j->begin;
    for (uint64_t i = 0; i < n && status == BPT_OK; i++) {
        status = take_record(j);
        if (status == BPT_OK) status = check_interrupt();
        bpt_ingest_progress_show(&progress, i + 1, n);
    }
    bpt_log_progress_end();
    return status;
}

static bpt_status commit(job *j) {
    if (j->writer) return bpt_writer_commit(j->writer);
    const bpt_status status =
        bpt_fail(BPT_EDATA, "none of %" PRIu64 " images is sound; the first: %.300s", j->plan.count,
                 j->bad.first.text);
    bpt_hint("%s lists them all", j->bad.path);
    return status;
}

/* ---- begin ---- */

static bpt_status nothing_to_resume(const job *j) {
    if (!j->o->append) {
        bpt_info("%s: there is nothing to resume: begins anew", j->o->split);
        return BPT_OK;
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "there is nothing to resume: no --append to split %s of %s was stopped behind its "
                 "first chunk",
                 j->o->split, j->o->out);
    bpt_hint(
        "`bpt-ingest info` shows whether it is done; if it is not, leave out --resume, which adds "
        "all of the images");
    return status;
}

/* Goes on with what was stopped, if there is any. */
static bpt_status take_up(job *j) {
    const bpt_writer_options options = writer_options(j, 0, 0, 0);
    BPT_TRY(bpt_writer_resume(j->o->out, &options, &j->writer));
    if (!j->writer) return nothing_to_resume(j);
    j->begin = bpt_writer_position(j->writer);
    j->n_found = bpt_writer_kept(j->writer);
    bpt_info("%s: goes on behind %" PRIu64 " of %" PRIu64 " images", j->o->split, j->begin,
             j->plan.count);
    return BPT_OK;
}

static bpt_status recall(void *arg, const char *line) {
    return bpt_bad_report_recall(arg, line);
}

static bpt_status open_source(job *j) {
    BPT_TRY(bpt_class_names_find(j->o, &j->names));
    if (j->names.n > 0) {
        j->source.class_names = j->names.names;
        j->source.n_class_names = (uint32_t)j->names.n;
    }
    BPT_TRY(j->importer->open(&j->source, &j->plan, &j->import));
    bpt_interrupt_catch(); /* from here on there may be something to clean up */
    return BPT_OK;
}

static bpt_status check_target(const job *j) {
    const bpt_intake intake = {.importer = j->importer->name,
                               .sources = j->source_names,
                               .n_sources = j->source.n_files,
                               .seed = j->importer->draws ? j->source.seed : 0};
    return j->o->append ? bpt_append_check(j->o->out, j->o->split, &intake) : BPT_OK;
}

static bpt_status open_stream(job *j) {
    bpt_import_stream_options options = {.n_threads = bpt_ingest_threads(j->o)};
    BPT_TRY(bpt_ingest_fit(j->o, &options.fit));
    BPT_TRY(bpt_ingest_quality(j->o, &options.quality));
    BPT_TRY(base_names(j));
    BPT_TRY(check_target(j));
    BPT_TRY(open_source(j));
    BPT_TRY(bpt_class_names_settle(&j->names, j->o, &j->plan));
    BPT_TRY(bpt_ingest_terms_make(j->o, j->importer, &j->source, j->import, &j->plan, &j->terms));
    if (!j->importer->draws)
        bpt_info("%s: %" PRIu64 " image%s of %u class%s found", j->o->split, j->plan.count,
                 j->plan.count == 1 ? "" : "s", j->plan.n_classes,
                 j->plan.n_classes == 1 ? "" : "es");
    if (j->o->resume) BPT_TRY(take_up(j));
    BPT_TRY(bpt_bad_report_open(&j->bad, j->o->skip_bad)); /* it may lie where images are sought */
    options.C = options.fit.C ? options.fit.C : j->names.C;
    if (j->writer) {
        BPT_TRY(bpt_bad_report_begin(&j->bad));
        BPT_TRY(bpt_writer_notes(j->writer, recall, &j->bad));
        options.begin = j->begin;
        options.since = bpt_writer_begun(j->writer);
        bpt_writer_shape(j->writer, &options.C, &options.H, &options.W);
    }
    j->reading_ns = bpt_clock_ns();
    return bpt_import_stream_open(j->importer, j->import, &j->plan, &options, &j->stream);
}

static bpt_status run_job(job *j) {
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(open_stream(j));
    BPT_TRY(take_records(j));
    BPT_TRY(bpt_bad_report_begin(&j->bad)); /* none was good */
    BPT_TRY(bpt_bad_report_close(&j->bad));
    BPT_TRY(commit(j));
    bpt_writer_close(j->writer); /* before the same process reads the dataset */
    j->writer = NULL;
    return bpt_ingest_summary(j->o->out, j->o->split, &j->bad, j->n_found,
                              bpt_clock_seconds_since(start_ns));
}

/* Whether the source is still what it was when the ingestion began; else --resume refuses it. What
 * the importer has listed is not looked for again: of that what failed tells enough. */
static bool has_same_source(const job *j, bpt_status failure) {
    bpt_ingest_terms now = {0};
    if (failure == BPT_ENOENT) return false; /* an image that was there is gone */
    const bpt_status status =
        bpt_ingest_terms_make(j->o, j->importer, &j->source, j->import, &j->plan, &now);
    const bool same = status == BPT_OK && strcmp(now.origin, j->terms.origin) == 0;
    bpt_ingest_terms_free(&now);
    return same;
}

/* Adds to what is said of a failure that not all has to be done again. */
static void offer_resume(const job *j, bpt_error *error) {
    const bool begun = j->writer && j->stream; /* else it was refused */
    const uint64_t kept = begun ? bpt_writer_kept(j->writer) : 0;
    if (kept == 0 || !has_same_source(j, error->status)) return;
    const bool stopped = error->status == BPT_ECANCELED; /* nothing is wrong but the time */
    char hint[BPT_ERROR_HINT_SIZE];
    snprintf(hint, sizeof hint,
             "%.230s%sthe same command with --resume goes on behind the first %" PRIu64 " images",
             stopped ? "" : error->hint, stopped || !error->hint[0] ? "" : "; ", kept);
    memcpy(error->hint, hint, sizeof hint);
}

static bpt_status run_import(const char *name, const bpt_command *usage, int argc, char **argv) {
    bpt_ingest_options o = {0}; /* a command has rows for some of its fields only */
    bpt_option_request request;
    bpt_option_set *set;
    BPT_TRY(bpt_options_parse(usage, argc, argv, &o, &request, &set));
    bpt_status status = BPT_OK;
    if (request != BPT_REQUEST_RUN) goto done;
    BPT_TRY_GOTO(status, bpt_ingest_check_target(usage, o.out, o.split), done);
    BPT_TRY_GOTO(status, bpt_ingest_check_mode(&o), done);
    int n_files;
    char *const *files = bpt_option_operands(set, &n_files);
    job j = {.importer = bpt_importer_find(name),
             .o = &o,
             .source = {.files = files,
                        .n_files = (size_t)n_files,
                        .skips_bad = o.skip_bad != NULL,
                        .root = o.root,
                        .rgb = o.channel_order == 1,
                        .count = (uint64_t)o.count,
                        .seed = (uint64_t)o.seed,
                        .split = o.split}};
    status = run_job(&j);
    bpt_error error; /* what led here, not what happens on the way out */
    bpt_error_get(&error);
    if (status != BPT_OK) offer_resume(&j, &error);
    end(&j);
    bpt_error_put(&error);
done:
    bpt_option_set_free(set);
    return status;
}

#define COMMAND(name)                                                                              \
    static bpt_status run_##name(int argc, char **argv) {                                          \
        return run_import(#name, &bpt_ingest_##name##_usage, argc, argv);                          \
    }                                                                                              \
    const bpt_ingest_command bpt_ingest_##name = {#name, &bpt_ingest_##name##_usage, run_##name};

COMMAND(idx)
COMMAND(cifar)
COMMAND(folder)
COMMAND(list)
COMMAND(caffe)
COMMAND(webdataset)
COMMAND(glyphs)
