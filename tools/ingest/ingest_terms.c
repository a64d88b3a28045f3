#include "tools/ingest/ingest_terms.h"

#include "base/checksum.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/images/image.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FILES = 16, TEXT_SIZE = 8192 }; /* files that get a line; bytes of all lines */

/* A text of fixed size that is added to; the lines below fit. */
typedef struct text {
    char bytes[TEXT_SIZE];
    size_t n;
} text;

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, arguments);
    va_end(arguments);
    if (n > 0 && (size_t)n < sizeof t->bytes - t->n) t->n += (size_t)n;
}

/* ---- what is made ---- */

static void add_flag(text *t, const char *name, bool given) {
    add(t, "%s--%s\n", given ? "" : "no ", name);
}

static void add_pair(text *t, const char *name, const int64_t *pair) {
    if (pair[0])
        add(t, "--%s %" PRId64 " %" PRId64 "\n", name, pair[0], pair[1]);
    else
        add_flag(t, name, false);
}

static void add_number(text *t, const char *name, int64_t number) {
    if (number)
        add(t, "--%s %" PRId64 "\n", name, number);
    else
        add_flag(t, name, false);
}

static uint64_t identify_classes(const bpt_import_plan *plan) {
    uint64_t identity = 0;
    for (uint32_t i = 0; plan->class_names && i < plan->n_classes; i++) {
        const char *name = plan->class_names[i];
        const uint64_t both[] = {identity, bpt_checksum(name, strlen(name))};
        identity = bpt_checksum(both, sizeof both);
    }
    return identity;
}

static void describe_wish(const bpt_ingest_options *o, const bpt_importer *importer, text *t) {
    static const char *const channels[] = {"as-is", "1", "3"}, *const orders[] = {"bgr", "rgb"};
    add(t, "bpt-ingest %s, version %s\n", importer->name, BPT_VERSION);
    add(t, "images made by rules %d\n", BPT_IMAGE_RULES);
    add(t, "--split %.64s\n", o->split);
    add_flag(t, "append", o->append);
    add_flag(t, "encoded", o->encoded);
    add_number(t, "quality", o->encoded && !o->quality ? BPT_INGEST_QUALITY : o->quality);
    add_pair(t, "resize", o->resize);
    add_number(t, "short-side", o->short_side);
    add_pair(t, "crop", o->crop);
    add(t, "--channels %s\n", channels[o->channels]);
    add(t, "--channel-order %s\n", orders[o->channel_order]);
    if (importer->draws) {
        add_number(t, "count", o->count);
        add(t, "--seed %" PRId64 "\n", o->seed);
    }
}

static void describe_classes(const bpt_import_plan *plan, text *t) {
    add(t, "%u classes (%016" PRIx64 ")\n", plan->n_classes, identify_classes(plan));
}

/* ---- of what ---- */

/* A folder has no size or time that says anything; of Caffe's the file in it has. */
static bool look(const char *path, struct stat *info) {
    char *file;
    if (stat(path, info) != 0) return false;
    if (!S_ISDIR(info->st_mode)) return true;
    if (bpt_strf(&file, "%s/data.mdb", path) != BPT_OK) return false;
    const bool found = stat(file, info) == 0;
    bpt_free(file);
    return found;
}

static void describe_file(const char *path, text *t) {
    char name[256];
    struct stat info;
    bpt_text_escape(path, name, sizeof name);
    add(t, "%s", name);
    if (look(path, &info))
        add(t, ": %" PRId64 " bytes of %" PRId64 ".%09ld", (int64_t)info.st_size,
            (int64_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    add(t, "\n");
}

static void describe_source(const bpt_importer *importer, const bpt_import_source *source,
                            void *import, const bpt_import_plan *plan, text *t) {
    uint64_t rest = 0;
    for (size_t i = 0; i < source->n_files; i++) {
        if (i < MAX_FILES) {
            describe_file(source->files[i], t);
            continue;
        }
        text one = {.n = 0};
        describe_file(source->files[i], &one);
        const uint64_t both[] = {rest, bpt_checksum(one.bytes, one.n)};
        rest = bpt_checksum(both, sizeof both);
    }
    if (source->n_files > MAX_FILES)
        add(t, "%zu files in all (%016" PRIx64 ")\n", source->n_files, rest);
    add(t, "%" PRIu64 " images", plan->count);
    if (importer->identify) add(t, " (%016" PRIx64 ")", importer->identify(import));
    add(t, "\n");
}

bpt_status bpt_ingest_terms_make(const bpt_ingest_options *o, const bpt_importer *importer,
                                 const bpt_import_source *source, void *import,
                                 const bpt_import_plan *plan, bpt_ingest_terms *terms) {
    text wanted = {.n = 0}, origin = {.n = 0};
    const bool are_found = !source->class_names && !o->classes; /* they are what the source has */
    describe_wish(o, importer, &wanted);
    describe_classes(plan, are_found ? &origin : &wanted);
    describe_source(importer, source, import, plan, &origin);
    BPT_TRY(bpt_strdup(wanted.bytes, &terms->wanted));
    return bpt_strdup(origin.bytes, &terms->origin);
}

void bpt_ingest_terms_free(bpt_ingest_terms *terms) {
    bpt_free(terms->wanted);
    bpt_free(terms->origin);
    *terms = (bpt_ingest_terms){0};
}
