/* Shards of WebDataset: tar files in which members that follow one another and share their name up
 * to the first dot are one sample: an image (.jpg, .jpeg, .png) and its label (.cls, a number from
 * 0 on, or the name of a class where the classes are known). Other members of a sample are passed
 * over. A sample that lacks one of the two, or has one twice, is bad.
 *
 * A first pass over the headers finds all samples, so that the images can then be fetched by many
 * threads, in order, and their number and classes are known before the work begins. */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/importers/class_table.h"
#include "storage/importers/encoded_file.h"
#include "storage/importers/file_list.h"
#include "storage/importers/importer.h"
#include "storage/importers/tar_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_LABEL = 256 }; /* bytes of a .cls */

typedef enum flaw {
    SOUND,
    NO_IMAGE,
    NO_LABEL,
    TWO_IMAGES,
    TWO_LABELS,
    WRONG_LABEL,
    IMAGE_SIZE,
} flaw;

static const char *const flaws[] = {
    [NO_IMAGE] = "it has no .jpg, .jpeg or .png",
    [NO_LABEL] = "it has no .cls",
    [TWO_IMAGES] = "it has more than one image",
    [TWO_LABELS] = "it has more than one .cls",
    [WRONG_LABEL] =
        "its .cls is neither the number of a class, from 0 on, nor the name of one that is known",
    [IMAGE_SIZE] = "its image is empty, or too large to be one",
};

typedef struct sample {
    uint64_t offset, size; /* of the image */
    uint32_t shard;
    uint32_t flaw;
} sample;

typedef struct webdataset {
    char *const *files; /* borrowed */
    bpt__class_table classes;
    bpt__file_list names; /* of the samples, and their labels */
    sample *samples;      /* shape [names.n] */
    size_t capacity;
    uint32_t n_classes;
    uint64_t next;
} webdataset;

static void webdataset_close(void *import) {
    webdataset *x = import;
    if (!x) return;
    bpt__class_table_free(&x->classes);
    bpt__file_list_free(&x->names);
    bpt_free(x->samples);
    bpt_free(x);
}

/* ---- the first pass ---- */

/* The sample under way. */
typedef struct group {
    char *name;
    sample sample;
    bool has_image, has_label;
    uint32_t label;
} group;

static bpt_status end_group(webdataset *x, group *g) {
    if (!g->name) return BPT_OK;
    if (!g->sample.flaw)
        g->sample.flaw = !g->has_image ? NO_IMAGE : !g->has_label ? NO_LABEL : SOUND;
    BPT_TRY(BPT_GROW("samples", x->names.n + 1, &x->samples, &x->capacity));
    x->samples[x->names.n] = g->sample;
    BPT_TRY(bpt__file_list_add(&x->names, g->name, g->label));
    if (!g->sample.flaw && g->label >= x->n_classes) x->n_classes = g->label + 1;
    bpt_free(g->name);
    *g = (group){0};
    return BPT_OK;
}

static bpt_status read_label(const webdataset *x, const char *shard, const bpt__tar_member *m,
                             group *g) {
    bpt_import_buffer buffer = {0};
    bpt_status status = BPT_OK;
    if (m->size > 0 && m->size < MAX_LABEL)
        status = bpt__encoded_piece_read(shard, m->name, m->offset, (size_t)m->size, &buffer);
    if (status == BPT_OK) {
        char text[MAX_LABEL] = "";
        if (buffer.bytes) memcpy(text, buffer.bytes, (size_t)m->size);
        size_t n = strlen(text);
        while (n > 0 && strchr(" \t\r\n", text[n - 1])) text[--n] = '\0';
        const char *word = text + strspn(text, " \t\r\n");
        if (!bpt__class_table_find(&x->classes, word, &g->label) &&
            !bpt__class_number(word, &g->label))
            g->sample.flaw = WRONG_LABEL;
        if (x->classes.n > 0 && g->label >= x->classes.n) g->sample.flaw = WRONG_LABEL;
    }
    bpt_free(buffer.bytes);
    return status;
}

static bpt_status add_member(const webdataset *x, uint32_t shard, const bpt__tar_member *m,
                             const char *extension, group *g) {
    if (strcasecmp(extension, "cls") == 0) {
        if (g->has_label) g->sample.flaw = TWO_LABELS;
        g->has_label = true;
        return read_label(x, x->files[shard], m, g);
    }
    if (strcasecmp(extension, "jpg") != 0 && strcasecmp(extension, "jpeg") != 0 &&
        strcasecmp(extension, "png") != 0)
        return BPT_OK;
    if (g->has_image) g->sample.flaw = TWO_IMAGES;
    g->has_image = true;
    if (m->size == 0 || m->size > BPT_IMPORT_MAX_ENCODED) g->sample.flaw = IMAGE_SIZE;
    g->sample.offset = m->offset;
    g->sample.size = m->size;
    return BPT_OK;
}

/* @return the length of a member's name up to the first dot of its last part; 0 for what belongs to
 * no sample: a hidden file, or one without a dot */
static size_t stem_length(const char *name) {
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name, *dot = strchr(base, '.');
    return dot && dot > base ? (size_t)(dot - name) : 0;
}

static bpt_status survey_shard(webdataset *x, uint32_t shard, group *g) {
    bpt__tar_file *tar;
    BPT_TRY(bpt__tar_open(x->files[shard], &tar));
    const size_t before = x->names.n;
    bpt_status status;
    for (;;) {
        bpt__tar_member m;
        bool found;
        BPT_TRY_GOTO(status, bpt__tar_next(tar, &m, &found), done);
        if (!found) break;
        const size_t n = stem_length(m.name);
        if (n == 0) continue;
        if (g->name && (strlen(g->name) != n || memcmp(g->name, m.name, n) != 0))
            BPT_TRY_GOTO(status, end_group(x, g), done);
        if (!g->name) BPT_TRY_GOTO(status, bpt_strf(&g->name, "%.*s", (int)n, m.name), done);
        g->sample.shard = shard;
        BPT_TRY_GOTO(status, add_member(x, shard, &m, m.name + n + 1, g), done);
    }
    status = end_group(x, g);
    if (status == BPT_OK && x->names.n == before) bpt_warn("%s holds no samples", x->files[shard]);
done:
    bpt__tar_close(tar);
    return status;
}

static bpt_status survey(webdataset *x, const bpt_import_source *source) {
    if (source->class_names)
        BPT_TRY(bpt__class_table_fill(&x->classes, source->class_names, source->n_class_names));
    for (size_t i = 0; i < source->n_files; i++) {
        group g = {0};
        const bpt_status status = survey_shard(x, (uint32_t)i, &g);
        bpt_free(g.name);
        BPT_TRY(status);
    }
    if (x->names.n == 0) {
        const bpt_status status = bpt_fail(BPT_EDATA, "%s%s hold%s no samples", source->files[0],
                                           source->n_files > 1 ? " and the other shards" : "",
                                           source->n_files > 1 ? "" : "s");
        bpt_hint("a sample is NAME.jpg or NAME.png with NAME.cls, its label, side by side");
        return status;
    }
    if (x->classes.n > x->n_classes) x->n_classes = x->classes.n;
    if (x->n_classes == 0) x->n_classes = 1; /* all are bad */
    return BPT_OK;
}

static bpt_status webdataset_open(const bpt_import_source *source, bpt_import_plan *plan,
                                  void **import) {
    if (source->n_files == 0) return bpt_fail(BPT_EUSAGE, "webdataset takes one or more tar files");
    webdataset *x;
    BPT_TRY(BPT_NEW("webdataset import", 1, &x));
    x->files = source->files;
    const bpt_status status = survey(x, source);
    if (status != BPT_OK) {
        webdataset_close(x);
        return status;
    }
    *plan = (bpt_import_plan){.count = x->names.n, .n_classes = x->n_classes};
    if (x->classes.n == x->n_classes) plan->class_names = (const char *const *)x->classes.names;
    *import = x;
    return BPT_OK;
}

/* ---- items ---- */

static bpt_status webdataset_next(void *import, bpt_import_item *item) {
    webdataset *x = import;
    item->number = x->next++;
    return BPT_OK;
}

static void webdataset_describe(void *import, const bpt_import_item *item, char *name,
                                size_t size) {
    const webdataset *x = import;
    char escaped[256];
    bpt_text_escape(bpt__file_list_name(&x->names, item->number), escaped, sizeof escaped);
    snprintf(name, size, "%s: %s", x->files[x->samples[item->number].shard], escaped);
}

static bpt_status webdataset_load(void *import, const bpt_import_item *item,
                                  bpt_import_buffer *buffer, bpt_import_image *image) {
    const webdataset *x = import;
    const sample *s = &x->samples[item->number];
    if (s->flaw) {
        char name[BPT_IMPORT_NAME_SIZE];
        webdataset_describe(import, item, name, sizeof name);
        return bpt_fail(BPT_EDATA, "%s: %s", name, flaws[s->flaw]);
    }
    BPT_TRY(bpt__encoded_piece_read(x->files[s->shard],
                                    bpt__file_list_name(&x->names, item->number), s->offset,
                                    (size_t)s->size, buffer));
    *image = (bpt_import_image){.label = x->names.entries[item->number].label,
                                .encoded = true,
                                .bytes = buffer->bytes,
                                .size = (size_t)s->size};
    return BPT_OK;
}

static uint64_t webdataset_identify(void *import) {
    const webdataset *x = import;
    return bpt__file_list_identify(&x->names);
}

const bpt_importer bpt__import_webdataset = {.name = "webdataset",
                                             .open = webdataset_open,
                                             .next = webdataset_next,
                                             .load = webdataset_load,
                                             .identify = webdataset_identify,
                                             .describe = webdataset_describe,
                                             .close = webdataset_close};
