/** @file base/yaml.h
 * YAML files for people: models, configurations, clusters, tuned parameters. A file becomes a tree
 * whose every node knows its line, so that errors name file and line (libyaml).
 *
 * One document a file; anchors and aliases are refused; depth, nodes and size are bounded.
 *
 * Threads: a document is read-only after loading and may be read by any number. */
#ifndef BPT_BASE_YAML_H
#define BPT_BASE_YAML_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bpt_yaml bpt_yaml;
typedef struct bpt_yaml_node bpt_yaml_node; /* borrowed from its document */

typedef enum bpt_yaml_kind { BPT_YAML_SCALAR, BPT_YAML_LIST, BPT_YAML_MAP } bpt_yaml_kind;

/** Loads a file.
 * @param[out] doc caller owns, bpt_yaml_free()
 * @return BPT_OK, BPT_EUSAGE (syntax, with file and line; no such file, too large, not a
 *         regular file), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_yaml_load(const char *path, bpt_yaml **doc);

/** The first half of it, for who keeps what was parsed: reads the file's text.
 * @param[out] text caller owns, bpt_free(); shape [*size]
 * @return as bpt_yaml_load(), but for syntax */
bpt_status bpt_yaml_read(const char *path, char **text, size_t *size);

/** The second half, of text in memory. @param name stands for the path in errors; copied */
bpt_status bpt_yaml_parse(const char *name, const char *text, size_t size, bpt_yaml **doc);
void bpt_yaml_free(bpt_yaml *doc);

/** @return the path or name given at loading */
const char *bpt_yaml_name(const bpt_yaml *doc);

/** @return the top node; an empty file is an empty map */
const bpt_yaml_node *bpt_yaml_root(const bpt_yaml *doc);

bpt_yaml_kind bpt_yaml_node_kind(const bpt_yaml_node *n);
/** @return from 1 */
int bpt_yaml_line(const bpt_yaml_node *n);
/** @return number of items of a list or pairs of a map, 0 for a scalar */
size_t bpt_yaml_size(const bpt_yaml_node *n);
/** @return item @p i of a list or value @p i of a map, in the order of the file */
const bpt_yaml_node *bpt_yaml_at(const bpt_yaml_node *n, size_t i);
/** @return key @p i of a map */
const char *bpt_yaml_key(const bpt_yaml_node *map, size_t i);
/** @return text of a scalar, NULL for another kind */
const char *bpt_yaml_text(const bpt_yaml_node *n);
/** @return the value at @p key of a map, NULL if there is none or @p map is not a map */
const bpt_yaml_node *bpt_yaml_find(const bpt_yaml_node *map, const char *key);

/** Fails with BPT_EUSAGE and "<file>:<line>: <message>". */
bpt_status bpt_yaml_fail(const bpt_yaml *doc, const bpt_yaml_node *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Checks that every key of a map is one of @p known, and that @p n is a map.
 * @param what names the map in the error ("layer conv1"); @param known shape [n_known]
 * @return BPT_OK, BPT_EUSAGE (names file, line and key; the hint has the nearest known key, or all)
 */
bpt_status bpt_yaml_check_keys(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                               const char *const *known, size_t n_known);

/* Typed values. @return BPT_OK, BPT_EUSAGE (not that type, or out of range; names file and line) */
bpt_status bpt_yaml_get_int(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                            int64_t min, int64_t max, int64_t *out);
bpt_status bpt_yaml_get_real(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             double min, double max, double *out);
bpt_status bpt_yaml_get_bool(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             bool *out);
/** @param[out] out borrowed from the document */
bpt_status bpt_yaml_get_text(const bpt_yaml *doc, const bpt_yaml_node *n, const char *what,
                             const char **out);

/** Writes a text that bpt_text_unfit() finds no fault with, between quotes, so that it is read as
 * it is. */
void bpt_yaml_put_text(FILE *out, const char *text);

#endif
