#include "tools/tuned_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "scheduler/policy.h"
#include "scheduler/pool.h"
#include "tools/yaml_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LOADER_THREADS = 64, MIN_PREFETCH = 2, MAX_PREFETCH = 1024 };

/* ---- its path ---- */

bool bpt_tuned_path_varies(const char *pattern) {
    return strstr(pattern, "%h") != NULL;
}

bpt_status bpt_tuned_path(const char *pattern, char **path) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "unknown");
    char *made;
    BPT_TRY(bpt_strdup(pattern, &made));
    for (char *at = strstr(made, "%h"); at;) {
        char *longer;
        const size_t before = (size_t)(at - made);
        const bpt_status status =
            bpt_strf(&longer, "%.*s%s%s", (int)before, made, host, at + strlen("%h"));
        bpt_free(made);
        BPT_TRY(status);
        made = longer;
        at = strstr(made + before + strlen(host), "%h");
    }
    *path = made;
    return BPT_OK;
}

/* ---- reading ---- */

/* @return BPT_EUSAGE where a map lacks a key */
static bpt_status find(const bpt_yaml *doc, const bpt_yaml_node *map, const char *key,
                       const bpt_yaml_node **value) {
    *value = bpt_yaml_find(map, key);
    return *value ? BPT_OK : bpt_yaml_fail(doc, map, "there is no \"%s\"", key);
}

static bpt_status read_key(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_tuned_key *key) {
    const char *names[BPT_N_TUNED_FIELDS];
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++)
        names[i] = bpt_tuned_field_name((bpt_tuned_field)i);
    BPT_TRY(bpt_yaml_check_keys(doc, map, "the key", names, BPT_N_TUNED_FIELDS));
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) {
        const bpt_yaml_node *node;
        const char *text;
        BPT_TRY(find(doc, map, names[i], &node));
        BPT_TRY(bpt_yaml_get_text(doc, node, names[i], &text));
        snprintf(key->value[i], sizeof key->value[i], "%s", text);
    }
    return BPT_OK;
}

/* What is measured with a dataset only may be missing. */
static bpt_status read_optional(const bpt_yaml *doc, const bpt_yaml_node *map, const char *name,
                                int64_t min, int64_t max, int64_t *value) {
    const bpt_yaml_node *node = bpt_yaml_find(map, name);
    *value = 0;
    return node ? bpt_yaml_get_int(doc, node, name, min, max, value) : BPT_OK;
}

static bpt_status read_policy(const bpt_yaml *doc, const bpt_yaml_node *map, char *name,
                              size_t size) {
    const bpt_yaml_node *node;
    const bpt_policy *policy;
    const char *text;
    BPT_TRY(find(doc, map, "policy", &node));
    BPT_TRY(bpt_yaml_get_text(doc, node, "policy", &text));
    if (bpt_policy_find(text, &policy) != BPT_OK)
        return bpt_yaml_fail(doc, node, "there is no policy \"%s\"", text);
    snprintf(name, size, "%s", text);
    return BPT_OK;
}

static bpt_status read_choices(const bpt_yaml *doc, const bpt_yaml_node *map,
                               bpt_tuned_choices *choices) {
    static const char *const names[] = {"threads", "policy", "loader-threads", "prefetch"};
    const bpt_yaml_node *threads;
    BPT_TRY(bpt_yaml_check_keys(doc, map, "the choices", names, sizeof names / sizeof *names));
    BPT_TRY(find(doc, map, "threads", &threads));
    BPT_TRY(bpt_yaml_get_int(doc, threads, "threads", 1, BPT_MAX_WORKERS, &choices->threads));
    BPT_TRY(read_policy(doc, map, choices->policy, sizeof choices->policy));
    BPT_TRY(
        read_optional(doc, map, "loader-threads", 1, MAX_LOADER_THREADS, &choices->loader_threads));
    return read_optional(doc, map, "prefetch", MIN_PREFETCH, MAX_PREFETCH, &choices->prefetch);
}

static bpt_status read_cost(const bpt_yaml *doc, const bpt_yaml_node *row, bpt_task_cost *cost) {
    int64_t ns;
    if (bpt_yaml_node_kind(row) != BPT_YAML_LIST || bpt_yaml_size(row) != 3)
        return bpt_yaml_fail(doc, row, "a cost is [layer, task, nanoseconds]");
    BPT_TRY(bpt_yaml_get_text(doc, bpt_yaml_at(row, 0), "layer", &cost->label));
    BPT_TRY(bpt_yaml_get_text(doc, bpt_yaml_at(row, 1), "task", &cost->kind));
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, 2), "nanoseconds", 1, INT64_MAX, &ns));
    cost->ns = (uint64_t)ns;
    return BPT_OK;
}

static bpt_status read_costs(const bpt_yaml *doc, const bpt_yaml_node *list, bpt_tuned *t) {
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST)
        return bpt_yaml_fail(doc, list, "\"costs\" is a list");
    t->n_costs = bpt_yaml_size(list);
    BPT_TRY(BPT_NEW("costs of tasks", t->n_costs, &t->costs));
    for (size_t i = 0; i < t->n_costs; i++)
        BPT_TRY(read_cost(doc, bpt_yaml_at(list, i), &t->costs[i]));
    return BPT_OK;
}

/* Convolutions stay whole where there is none. */
static bpt_status read_cuts(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_tuned *t) {
    if (!map) return BPT_OK;
    BPT_TRY(bpt_cost_table_read(doc, map, &t->cuts));
    t->choices.cuts = &t->cuts;
    return BPT_OK;
}

/* The last line: without it, or with fewer rows than it says, the end of a file is not there. */
static bpt_status check_rows(const bpt_yaml *doc, const bpt_yaml_node *root, const bpt_tuned *t) {
    const bpt_yaml_node *node = bpt_yaml_find(root, "rows");
    const size_t n = t->n_costs + t->cuts.n;
    int64_t rows;
    if (!node) return bpt_yaml_fail(doc, root, "the end is missing: there is no \"rows\"");
    BPT_TRY(bpt_yaml_get_int(doc, node, "rows", 0, INT64_MAX, &rows));
    if ((uint64_t)rows == n) return BPT_OK;
    return bpt_yaml_fail(doc, node, "%zu rows of costs and cuts are there, not %" PRId64, n, rows);
}

static bpt_status check_format(const bpt_yaml *doc, const bpt_yaml_node *root) {
    const bpt_yaml_node *format;
    int64_t version;
    BPT_TRY(find(doc, root, "tuned", &format));
    BPT_TRY(bpt_yaml_get_int(doc, format, "tuned", 1, INT64_MAX, &version));
    if (version == BPT_TUNED_FORMAT) return BPT_OK;
    const bpt_status status = bpt_yaml_fail(
        doc, format, "the file is of format %" PRId64 ", this program reads format %d", version,
        BPT_TUNED_FORMAT);
    bpt_hint("run bpt-tune again, of the same version of bpt as this program");
    return status;
}

static bpt_status read_all(const bpt_yaml *doc, bpt_tuned *t) {
    static const char *const names[] = {"tuned", "key", "choices", "costs", "cuts", "rows"};
    const bpt_yaml_node *root = bpt_yaml_root(doc), *key, *choices, *costs;
    BPT_TRY(check_format(doc, root)); /* first: another format may have other keys */
    BPT_TRY(bpt_yaml_check_keys(doc, root, "a tuned file", names, sizeof names / sizeof *names));
    BPT_TRY(find(doc, root, "key", &key));
    BPT_TRY(find(doc, root, "choices", &choices));
    BPT_TRY(find(doc, root, "costs", &costs));
    BPT_TRY(read_key(doc, key, &t->key));
    BPT_TRY(read_choices(doc, choices, &t->choices));
    BPT_TRY(read_costs(doc, costs, t));
    BPT_TRY(read_cuts(doc, bpt_yaml_find(root, "cuts"), t));
    return check_rows(doc, root, t);
}

bpt_status bpt_tuned_read(const char *path, bpt_tuned **tuned) {
    bpt_tuned *t;
    BPT_TRY(BPT_NEW("tuned values", 1, &t));
    bpt_status status = bpt_yaml_load(path, &t->document);
    if (status == BPT_OK) status = read_all(t->document, t);
    if (status == BPT_OK) {
        *tuned = t;
        return BPT_OK;
    }
    if (status == BPT_EUSAGE && !bpt_error_last()->hint[0])
        bpt_hint("such files are made by bpt-tune");
    bpt_tuned_free(t);
    return status;
}

void bpt_tuned_free(bpt_tuned *tuned) {
    if (!tuned) return;
    bpt_cost_table_clear(&tuned->cuts);
    bpt_yaml_free(tuned->document);
    bpt_free(tuned->costs);
    bpt_free(tuned);
}

/* ---- writing ---- */

bpt_status bpt_tuned_check_place(const char *path) {
    /* A configuration of bpt-train has a key "tuned" too. */
    static const char *const keys[] = {"tuned", "choices"};
    return bpt_yaml_place_check(path, "file of bpt-tune", keys, sizeof keys / sizeof *keys);
}

/* @param cuts the text of the table, NULL where there is none */
static void put_all(FILE *out, const bpt_tuned *t, const char *comment, const char *cuts) {
    const bpt_tuned_choices *c = &t->choices;
    fprintf(out, "%stuned: %d\n\nkey:\n", comment, BPT_TUNED_FORMAT);
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) {
        fprintf(out, "  %s: ", bpt_tuned_field_name((bpt_tuned_field)i));
        bpt_yaml_put_text(out, t->key.value[i]);
        putc('\n', out);
    }
    fprintf(out, "\nchoices:\n  threads: %" PRId64 "\n  policy: %s\n", c->threads, c->policy);
    if (c->loader_threads) fprintf(out, "  loader-threads: %" PRId64 "\n", c->loader_threads);
    if (c->prefetch) fprintf(out, "  prefetch: %" PRId64 "\n", c->prefetch);
    fprintf(out, "\n# layer, task, nanoseconds of one such task\ncosts:%s\n",
            t->n_costs ? "" : " []");
    for (size_t i = 0; i < t->n_costs; i++) {
        fputs("  - [", out);
        bpt_yaml_put_text(out, t->costs[i].label);
        fputs(", ", out);
        bpt_yaml_put_text(out, t->costs[i].kind);
        fprintf(out, ", %" PRIu64 "]\n", t->costs[i].ns);
    }
    if (cuts)
        fprintf(out,
                "\n# step, type, algorithm, convolution, cut, nanoseconds of one part\ncuts:\n%s",
                cuts);
    fprintf(out, "\n# of costs and cuts\nrows: %zu\n", t->n_costs + (cuts ? c->cuts->n : 0));
}

static bpt_status write_text(const char *path, const bpt_tuned *tuned, const char *comment,
                             const char *cuts) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool whole = stream != NULL;
    if (stream) {
        put_all(stream, tuned, comment, cuts);
        whole = !ferror(stream);
        whole = fclose(stream) == 0 && whole;
    }
    const bpt_status status = whole ? bpt_file_write(path, text, size)
                                    : bpt_fail(BPT_ENOMEM, "no memory for the text of %s", path);
    free(text);
    return status;
}

bpt_status bpt_tuned_write(const char *path, const bpt_tuned *tuned, const char *comment) {
    const bpt_cost_table *table = tuned->choices.cuts;
    char *cuts = NULL;
    if (table) BPT_TRY(bpt_cost_table_write(table, 2, &cuts));
    const bpt_status status = write_text(path, tuned, comment, cuts);
    bpt_free(cuts);
    return status;
}

/* ---- its costs ---- */

/* Tasks are asked for in the order of the plan, which is about that of the rows: the row of the
 * last answer comes first, then those behind it. */
uint64_t bpt_tuned_cost(void *tuned, const char *label, const char *kind) {
    bpt_tuned *t = tuned;
    for (size_t n = 0; n < t->n_costs; n++) {
        const size_t i = (t->last_cost + n) % t->n_costs;
        if (strcmp(t->costs[i].label, label) != 0 || strcmp(t->costs[i].kind, kind) != 0) continue;
        t->last_cost = i;
        return t->costs[i].ns;
    }
    return 0;
}
