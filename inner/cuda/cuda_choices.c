/* {format: 2, gpu: "NVIDIA H100", cudnn: 91900, cublaslt: 130100, tf32: false,
 *  choices: [[key, way, list, place, ns], ...]} */
#include "inner/cuda/cuda_choices.h"

#include "base/memory.h"
#include "inner/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT = 2, LINE_SIZE = BPT__CHOICE_KEY_SIZE + 96, HEAD_SIZE = 512 };

void bpt__choices_clear(bpt__choices *choices) {
    bpt_free(choices->items);
    *choices = (bpt__choices){0};
}

static bpt__choice *find(const bpt__choices *choices, const char *key) {
    for (size_t i = 0; i < choices->n; i++)
        if (strcmp(choices->items[i].key, key) == 0) return &choices->items[i];
    return NULL;
}

const bpt__choice *bpt__choices_find(bpt__choices *choices, const char *key) {
    bpt__choice *found = find(choices, key);
    if (found) found->used = true;
    return found;
}

static bpt_status add(bpt__choices *choices, const bpt__choice *choice) {
    BPT_TRY(BPT_GROW("choices of engines", choices->n + 1, &choices->items, &choices->capacity));
    choices->items[choices->n++] = *choice;
    return BPT_OK;
}

bpt_status bpt__choices_note(bpt__choices *choices, const bpt__choice *choice) {
    bpt__choice *found = find(choices, choice->key);
    bpt__choice used = *choice;
    used.used = true;
    if (!found) return add(choices, &used);
    *found = used;
    return BPT_OK;
}

/* ---- writing ---- */

bpt_status bpt__choices_write(const bpt__choices *choices, const bpt__choice_terms *terms,
                              char **text) {
    const size_t size = HEAD_SIZE + choices->n * LINE_SIZE;
    size_t at, n_used = 0;
    for (size_t i = 0; i < choices->n; i++) n_used += choices->items[i].used;
    BPT_TRY(bpt_alloc("text of choices", 1, size, (void **)text));
    at = (size_t)snprintf(*text, HEAD_SIZE,
                          "format: %d\ngpu: \"%.128s\"\ncudnn: %" PRId64 "\ncublaslt: %" PRId64
                          "\ntf32: %s\nchoices:%s\n",
                          (int)FORMAT, terms->gpu, terms->cudnn, terms->cublaslt,
                          terms->tf32 ? "true" : "false", n_used ? "" : " []");
    for (size_t i = 0; i < choices->n; i++) {
        const bpt__choice *c = &choices->items[i];
        if (!c->used) continue;
        at += (size_t)snprintf(*text + at, LINE_SIZE,
                               "  - [%s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]\n",
                               c->key, c->way, c->list, c->place, c->ns);
    }
    return BPT_OK;
}

/* ---- reading ---- */

static bpt_status read_terms(const bpt_yaml *doc, const bpt_yaml_node *map,
                             bpt__choice_terms *terms) {
    BPT_TRY(bpt_yaml_get_text(doc, bpt_yaml_find(map, "gpu"), "gpu", &terms->gpu));
    BPT_TRY(
        bpt_yaml_get_int(doc, bpt_yaml_find(map, "cudnn"), "cudnn", 0, INT64_MAX, &terms->cudnn));
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_find(map, "cublaslt"), "cublaslt", 0, INT64_MAX,
                             &terms->cublaslt));
    return bpt_yaml_get_bool(doc, bpt_yaml_find(map, "tf32"), "tf32", &terms->tf32);
}

/* @return what a file is of that is not so here, the weightiest first */
static const char *difference(const bpt__choice_terms *file, const bpt__choice_terms *here) {
    if (strcmp(file->gpu, here->gpu) != 0) return "another card";
    if (file->cudnn != here->cudnn) return "another version of cuDNN";
    if (file->cublaslt != here->cublaslt) return "another version of cuBLASLt";
    if (file->tf32 != here->tf32)
        return file->tf32 ? "--precision tf32" : "another --precision than tf32";
    return NULL;
}

static bpt_status read_choice(const bpt_yaml *doc, const bpt_yaml_node *row, bpt__choice *c) {
    const char *key;
    if (bpt_yaml_node_kind(row) != BPT_YAML_LIST || bpt_yaml_size(row) != 5)
        return bpt_yaml_fail(doc, row, "a choice is [problem, way, list, place, nanoseconds]");
    BPT_TRY(bpt_yaml_get_text(doc, bpt_yaml_at(row, 0), "problem", &key));
    if (strlen(key) >= sizeof c->key)
        return bpt_yaml_fail(doc, row, "a problem has less than %zu letters", sizeof c->key);
    strcpy(c->key, key);
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, 1), "way", 0, 1, &c->way));
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, 2), "list", 0, 2, &c->list));
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, 3), "place", 0, 9999, &c->place));
    return bpt_yaml_get_int(doc, bpt_yaml_at(row, 4), "nanoseconds", 0, INT64_MAX, &c->ns);
}

bpt_status bpt__choices_read(bpt__choices *choices, const bpt_yaml *doc, const bpt_yaml_node *map,
                             const bpt__choice_terms *terms, const char **unlike) {
    static const char *const keys[] = {"format", "gpu", "cudnn", "cublaslt", "tf32", "choices"};
    const bpt_yaml_node *list;
    bpt__choice_terms written;
    BPT_TRY(bpt_device_choices_format(doc, map, FORMAT, unlike));
    if (*unlike) return BPT_OK;
    BPT_TRY(bpt_yaml_check_keys(doc, map, "a file of choices", keys, sizeof keys / sizeof *keys));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!bpt_yaml_find(map, keys[i]))
            return bpt_yaml_fail(doc, map, "a file of choices has \"%s\"", keys[i]);
    list = bpt_yaml_find(map, "choices");
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST)
        return bpt_yaml_fail(doc, list, "choices are a list");
    BPT_TRY(read_terms(doc, map, &written));
    *unlike = difference(&written, terms);
    for (size_t i = 0; !*unlike && i < bpt_yaml_size(list); i++) {
        bpt__choice c = {.used = false};
        BPT_TRY(read_choice(doc, bpt_yaml_at(list, i), &c));
        BPT_TRY(add(choices, &c));
    }
    return BPT_OK;
}
