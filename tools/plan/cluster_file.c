#include "tools/plan/cluster_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "scheduler/pool.h"
#include "tools/yaml_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 256, IDENTITY_DIGITS = 16, MOST_SAMPLES = 1000000 };

/* Of a step in milliseconds, and of all else that counts for nothing where it is small. */
static const double least_ms = 1e-6, most_ms = 1e9, most = 1e9;
static const double least_speed = 1e-3, most_speed = 1e3;

/* What may be known of a node: as people say it in the file, and as a bpt_node has it. */
typedef struct {
    const char *name;
    size_t offset;   /* of the double in a bpt_node */
    double unit;     /* of the file's, in that of the bpt_node */
    double min, max; /* in the file */
    bool is_time;    /* a node of twice the speed needs half of it */
} figure;

static const figure figures[] = {
    {"memory-gb", offsetof(bpt_node, memory_bytes), 1e9, 1e-3, 1e9, false},
    {"link-mbit", offsetof(bpt_node, link_bytes_per_s), 1e6 / 8, 1e-3, 1e9, false},
    {"message-ns-per-kb", offsetof(bpt_node, message_s_per_byte), 1e-12, 0, 1e9, true},
    {"copy-ms", offsetof(bpt_node, copy_s), 1e-3, 0, 1e9, true},
    {"load-us-per-image", offsetof(bpt_node, load_s_per_image), 1e-6, 0, 1e9, true},
};
enum { N_FIGURES = sizeof figures / sizeof *figures };

/* ---- reading ---- */

/* Finds a whole number that may be missing, and is @p *value then. */
static bpt_status read_count(const bpt_yaml *doc, const bpt_yaml_node *map, const char *name,
                             int64_t max, uint32_t *value) {
    const bpt_yaml_node *n = bpt_yaml_find(map, name);
    int64_t read;
    if (!n) return BPT_OK;
    BPT_TRY(bpt_yaml_get_int(doc, n, name, 1, max, &read));
    *value = (uint32_t)read;
    return BPT_OK;
}

/* Likewise for a real one. */
static bpt_status read_real(const bpt_yaml *doc, const bpt_yaml_node *map, const char *name,
                            double min, double max, double *value) {
    const bpt_yaml_node *n = bpt_yaml_find(map, name);
    return n ? bpt_yaml_get_real(doc, n, name, min, max, value) : BPT_OK;
}

/* Likewise for a text: one that is written in a line, and can be read there again. */
static bpt_status read_text(const bpt_yaml *doc, const bpt_yaml_node *map, const char *name,
                            const char **text) {
    const bpt_yaml_node *n = bpt_yaml_find(map, name);
    if (!n) return BPT_OK;
    BPT_TRY(bpt_yaml_get_text(doc, n, name, text));
    if (!**text) return bpt_yaml_fail(doc, n, "%s is empty", name);
    if (strlen(*text) >= TEXT_SIZE)
        return bpt_yaml_fail(doc, n, "%s has more than %d bytes", name, TEXT_SIZE - 1);
    for (const char *at = *text; *at; at++)
        if (bpt_text_unfit(at)) return bpt_yaml_fail(doc, n, "%s has a control character", name);
    return BPT_OK;
}

/* The ranges of times are those of the node: what the file has is divided by its speed. */
static bpt_status read_step(const bpt_yaml *doc, const bpt_yaml_node *pair, double speed,
                            bpt_step_time *step) {
    int64_t samples;
    double ms;
    if (bpt_yaml_node_kind(pair) != BPT_YAML_LIST || bpt_yaml_size(pair) != 2)
        return bpt_yaml_fail(doc, pair, "a step is [samples, milliseconds]");
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(pair, 0), "samples", 1, MOST_SAMPLES, &samples));
    BPT_TRY(bpt_yaml_get_real(doc, bpt_yaml_at(pair, 1), "milliseconds", least_ms * speed,
                              most_ms * speed, &ms));
    *step = (bpt_step_time){.samples = (double)samples, .seconds = 1e-3 * ms / speed};
    return BPT_OK;
}

static bpt_status check_order(const bpt_yaml *doc, const bpt_yaml_node *pair,
                              const bpt_step_time *before, const bpt_step_time *step) {
    if (step->samples <= before->samples)
        return bpt_yaml_fail(doc, pair, "a step of %g samples comes behind one of %g",
                             step->samples, before->samples);
    if (step->seconds < before->seconds)
        return bpt_yaml_fail(doc, pair, "a step of %g samples takes less than one of %g",
                             step->samples, before->samples);
    return BPT_OK;
}

static bpt_status read_steps(const bpt_yaml *doc, const bpt_yaml_node *list, double speed,
                             bpt_node *node) {
    const size_t n = bpt_yaml_size(list);
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST || n < 1 || n > BPT_NODE_STEPS)
        return bpt_yaml_fail(doc, list, "\"steps\" is a list of 1 to %d steps", BPT_NODE_STEPS);
    for (size_t i = 0; i < n; i++) {
        const bpt_yaml_node *pair = bpt_yaml_at(list, i);
        BPT_TRY(read_step(doc, pair, speed, &node->steps[i]));
        if (i > 0) BPT_TRY(check_order(doc, pair, &node->steps[i - 1], &node->steps[i]));
    }
    node->n_steps = (uint32_t)n;
    return BPT_OK;
}

static bpt_status read_rate(const bpt_yaml *doc, const bpt_yaml_node *n, double speed,
                            bpt_node *node) {
    double images_per_s;
    BPT_TRY(bpt_yaml_get_real(doc, n, "images-per-s", 1e3 / most_ms / speed, 1e3 / least_ms / speed,
                              &images_per_s));
    node->steps[0] = (bpt_step_time){.samples = 1, .seconds = 1 / (images_per_s * speed)};
    node->n_steps = 1;
    return BPT_OK;
}

static bpt_status read_speed(const bpt_yaml *doc, const bpt_yaml_node *map, double *speed,
                             bpt_node *node) {
    const bpt_yaml_node *steps = bpt_yaml_find(map, "steps");
    const bpt_yaml_node *rate = bpt_yaml_find(map, "images-per-s");
    *speed = 1;
    BPT_TRY(read_real(doc, map, "speed", least_speed, most_speed, speed));
    if (steps && rate)
        return bpt_yaml_fail(doc, map, "\"steps\" and \"images-per-s\" say the same: give one");
    if (!steps && !rate)
        return bpt_yaml_fail(doc, map, "there is neither \"steps\" nor \"images-per-s\"");
    return steps ? read_steps(doc, steps, *speed, node) : read_rate(doc, rate, *speed, node);
}

static bpt_status read_figure(const bpt_yaml *doc, const bpt_yaml_node *map, const figure *f,
                              double speed, bpt_node *node) {
    const double by = f->is_time ? speed : 1;
    double value = 0;
    BPT_TRY(read_real(doc, map, f->name, f->min * by, f->max * by, &value));
    *(double *)((char *)node + f->offset) = value * f->unit / by;
    return BPT_OK;
}

static bpt_status read_node(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_node *node) {
    static const char *const own[] = {"name",  "count", "threads",     "on-device",
                                      "speed", "steps", "images-per-s"};
    enum { N_OWN = sizeof own / sizeof *own };
    const char *names[N_OWN + N_FIGURES];
    double speed;
    memcpy(names, own, sizeof own);
    for (int i = 0; i < N_FIGURES; i++) names[N_OWN + i] = figures[i].name;
    BPT_TRY(bpt_yaml_check_keys(doc, map, "a node", names, N_OWN + N_FIGURES));
    *node = (bpt_node){.count = 1, .threads = 1};
    BPT_TRY(read_text(doc, map, "name", &node->name));
    if (!node->name) return bpt_yaml_fail(doc, map, "a node has no \"name\"");
    BPT_TRY(read_count(doc, map, "count", BPT_CLUSTER_MOST, &node->count));
    BPT_TRY(read_count(doc, map, "threads", BPT_MAX_WORKERS, &node->threads));
    const bpt_yaml_node *on_device = bpt_yaml_find(map, "on-device");
    if (on_device) BPT_TRY(bpt_yaml_get_bool(doc, on_device, "on-device", &node->on_device));
    BPT_TRY(read_speed(doc, map, &speed, node));
    for (int i = 0; i < N_FIGURES; i++) BPT_TRY(read_figure(doc, map, &figures[i], speed, node));
    return BPT_OK;
}

static bpt_status read_nodes(const bpt_yaml *doc, const bpt_yaml_node *list, bpt_cluster *c) {
    uint32_t n_ranks = 0;
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST || bpt_yaml_size(list) == 0)
        return bpt_yaml_fail(doc, list, "\"nodes\" is a list of at least one node");
    BPT_TRY(BPT_NEW("nodes of a cluster", bpt_yaml_size(list), &c->nodes));
    for (size_t i = 0; i < bpt_yaml_size(list); i++) {
        const bpt_yaml_node *map = bpt_yaml_at(list, i);
        BPT_TRY(read_node(doc, map, &c->nodes[i]));
        n_ranks += c->nodes[i].count;
        if (n_ranks > BPT_CLUSTER_MOST)
            return bpt_yaml_fail(doc, map, "these are more than %d machines", BPT_CLUSTER_MOST);
    }
    c->n_nodes = bpt_yaml_size(list);
    return BPT_OK;
}

static bpt_status read_model(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_cluster_model *m) {
    static const char *const names[] = {"name", "identity", "precision", "optimizer"};
    if (!map) return BPT_OK;
    BPT_TRY(bpt_yaml_check_keys(doc, map, "the model", names, sizeof names / sizeof *names));
    BPT_TRY(read_text(doc, map, "name", &m->name));
    BPT_TRY(read_text(doc, map, "identity", &m->identity));
    BPT_TRY(read_text(doc, map, "precision", &m->precision));
    BPT_TRY(read_text(doc, map, "optimizer", &m->optimizer));
    if (!m->identity || (strlen(m->identity) == IDENTITY_DIGITS &&
                         strspn(m->identity, "0123456789abcdef") == IDENTITY_DIGITS))
        return BPT_OK;
    return bpt_yaml_fail(doc, bpt_yaml_find(map, "identity"),
                         "identity is %d digits of 0 to 9 and a to f", IDENTITY_DIGITS);
}

static bpt_status check_format(const bpt_yaml *doc, const bpt_yaml_node *root) {
    const bpt_yaml_node *format = bpt_yaml_find(root, "bpt-cluster");
    int64_t version;
    if (!format) return bpt_yaml_fail(doc, root, "there is no \"bpt-cluster\"");
    BPT_TRY(bpt_yaml_get_int(doc, format, "bpt-cluster", 1, INT64_MAX, &version));
    if (version == BPT_CLUSTER_FORMAT) return BPT_OK;
    const bpt_status status = bpt_yaml_fail(
        doc, format, "the file is of format %" PRId64 ", this program reads format %d", version,
        BPT_CLUSTER_FORMAT);
    bpt_hint("run bpt-plan --measure again, of the same version of bpt as this program");
    return status;
}

static bpt_status read_all(const bpt_yaml *doc, bpt_cluster *c) {
    static const char *const names[] = {"bpt-cluster", "latency-us", "model", "nodes"};
    const bpt_yaml_node *root = bpt_yaml_root(doc), *nodes = bpt_yaml_find(root, "nodes");
    double latency_us = 0;
    BPT_TRY(check_format(doc, root)); /* first: another format may have other keys */
    BPT_TRY(bpt_yaml_check_keys(doc, root, "a cluster", names, sizeof names / sizeof *names));
    BPT_TRY(read_real(doc, root, "latency-us", 0, most, &latency_us));
    c->latency_s = 1e-6 * latency_us;
    BPT_TRY(read_model(doc, bpt_yaml_find(root, "model"), &c->model));
    if (!nodes) return bpt_yaml_fail(doc, root, "there is no \"nodes\"");
    return read_nodes(doc, nodes, c);
}

/* @param loaded what making the document has come to */
static bpt_status end_reading(bpt_status loaded, bpt_cluster_file *file) {
    const bpt_status status = loaded == BPT_OK ? read_all(file->document, &file->cluster) : loaded;
    if (status == BPT_EUSAGE && !bpt_error_last()->hint[0])
        bpt_hint("such files are made by bpt-plan --measure, or by hand as docs/formats.md says");
    return status;
}

bpt_status bpt_cluster_file_read(const char *path, bpt_cluster_file *file) {
    *file = (bpt_cluster_file){0};
    return end_reading(bpt_yaml_load(path, &file->document), file);
}

bpt_status bpt_cluster_file_parse(const char *name, const char *text, size_t size,
                                  bpt_cluster_file *file) {
    *file = (bpt_cluster_file){0};
    return end_reading(bpt_yaml_parse(name, text, size, &file->document), file);
}

void bpt_cluster_file_free(bpt_cluster_file *file) {
    bpt_free(file->cluster.nodes);
    bpt_yaml_free(file->document);
    *file = (bpt_cluster_file){0};
}

/* ---- writing ---- */

bpt_status bpt_cluster_file_check_place(const char *path) {
    static const char *const keys[] = {"bpt-cluster"};
    return bpt_yaml_place_check(path, "file of bpt-plan", keys, sizeof keys / sizeof *keys);
}

/* Names of models and hosts are others', who may have put anything into them. */
static void put_text(FILE *out, const char *key, const char *text) {
    char fit[TEXT_SIZE];
    if (!text) return;
    bpt_text_escape(text, fit, sizeof fit);
    fprintf(out, "%s: ", key);
    bpt_yaml_put_text(out, fit);
    putc('\n', out);
}

static void put_model(FILE *out, const bpt_cluster_model *m) {
    if (!m->name && !m->identity && !m->precision && !m->optimizer) return;
    fputs("model:\n", out);
    put_text(out, "  name", m->name);
    put_text(out, "  identity", m->identity);
    put_text(out, "  precision", m->precision);
    put_text(out, "  optimizer", m->optimizer);
}

static void put_node(FILE *out, const bpt_node *node) {
    put_text(out, "  - name", node->name);
    if (node->count > 1) fprintf(out, "    count: %" PRIu32 "\n", node->count);
    fprintf(out, "    threads: %" PRIu32 "\n", node->threads);
    if (node->on_device) fprintf(out, "    on-device: true\n");
    fprintf(out, "    steps: [");
    for (uint32_t i = 0; i < node->n_steps; i++)
        fprintf(out, "%s[%.0f, %.6g]", i ? ", " : "", node->steps[i].samples,
                1e3 * node->steps[i].seconds);
    fputs("]\n", out);
    for (int i = 0; i < N_FIGURES; i++) {
        const double value = *(const double *)((const char *)node + figures[i].offset);
        if (value > 0) fprintf(out, "    %s: %.6g\n", figures[i].name, value / figures[i].unit);
    }
}

void bpt_cluster_file_put(FILE *out, const bpt_cluster *c, const char *comment) {
    fprintf(out, "%sbpt-cluster: %d\n", comment, BPT_CLUSTER_FORMAT);
    if (c->latency_s > 0) fprintf(out, "latency-us: %.6g\n", 1e6 * c->latency_s);
    put_model(out, &c->model);
    fputs("\n# steps: samples, milliseconds\nnodes:\n", out);
    for (size_t i = 0; i < c->n_nodes; i++) put_node(out, &c->nodes[i]);
}

bpt_status bpt_cluster_file_write(const char *path, const bpt_cluster *cluster,
                                  const char *comment) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool whole = stream != NULL;
    if (stream) {
        bpt_cluster_file_put(stream, cluster, comment);
        whole = !ferror(stream);
        whole = fclose(stream) == 0 && whole;
    }
    const bpt_status status = whole ? bpt_file_write(path, text, size)
                                    : bpt_fail(BPT_ENOMEM, "no memory for the text of %s", path);
    free(text);
    return status;
}
