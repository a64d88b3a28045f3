/* Any bytes as a YAML file: every node can be walked to, knows its line and its kind, and gives its
 * value as whatever type it may be asked for, within the range that was asked for. */
#include "base/memory.h"
#include "base/yaml.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_scalar(const bpt_yaml *doc, const bpt_yaml_node *n) {
    int64_t integer;
    double real;
    bool truth;
    const char *text;
    if (!bpt_yaml_text(n)) abort();
    if (!bpt_yaml_get_int(doc, n, "it", -5, 1000, &integer) && (integer < -5 || integer > 1000))
        abort();
    if (!bpt_yaml_get_real(doc, n, "it", -0.5, 1e9, &real) && !(real >= -0.5 && real <= 1e9))
        abort();
    (void)bpt_yaml_get_bool(doc, n, "it", &truth);
    if (!bpt_yaml_get_text(doc, n, "it", &text) && text != bpt_yaml_text(n)) abort();
}

static void read_map(const bpt_yaml *doc, const bpt_yaml_node *n) {
    static const char *const known[] = {"name", "input", "layers"};
    bool there = false;
    for (size_t i = 0; i < bpt_yaml_size(n); i++) {
        if (!bpt_yaml_find(n, bpt_yaml_key(n, i))) abort();
        there = there || strcmp(bpt_yaml_key(n, i), known[0]) == 0;
    }
    if ((bpt_yaml_find(n, known[0]) != NULL) != there) abort();
    (void)bpt_yaml_check_keys(doc, n, "it", known, sizeof known / sizeof *known);
}

/* The depth of a document is bounded. */
static void walk(const bpt_yaml *doc, const bpt_yaml_node *n) {
    const bpt_yaml_kind kind = bpt_yaml_node_kind(n);
    if (bpt_yaml_line(n) < 1) abort();
    if (kind == BPT_YAML_SCALAR) read_scalar(doc, n);
    if (kind == BPT_YAML_MAP) read_map(doc, n);
    for (size_t i = 0; i < bpt_yaml_size(n); i++) walk(doc, bpt_yaml_at(n, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint64_t live = bpt_memory_live();
    bpt_yaml *doc;
    if (bpt_yaml_parse("fuzz", (const char *)data, size, &doc) == BPT_OK) {
        walk(doc, bpt_yaml_root(doc));
        bpt_yaml_free(doc);
    }
    if (bpt_memory_live() != live) abort();
    return 0;
}
