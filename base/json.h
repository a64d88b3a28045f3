/** @file base/json.h
 * JSON: a writer that builds text as it goes, and a reader with range checks (jansson).
 *
 * Threads: a writer or a document belongs to one thread at a time. */
#ifndef BPT_BASE_JSON_H
#define BPT_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

enum { BPT_JSON_DEPTH = 16 };

/** A JSON text that grows. Zero-initialise; release with bpt_json_free(). Running out of memory is
 * remembered and reported by bpt_json_end_text(), so that calls need no check each. */
typedef struct bpt_json_writer {
    char *text;
    size_t length, capacity;
    bpt_status status;
    int depth;
    bool has_items[BPT_JSON_DEPTH + 1]; /* whether a comma comes before the next item */
} bpt_json_writer;

/* Every call below adds one value. @p key names it inside an object and is NULL inside an array or
 * at the top. A number that is not finite is written as null; bytes that are no UTF-8 as U+FFFD. */
void bpt_json_open_object(bpt_json_writer *w, const char *key);
void bpt_json_open_array(bpt_json_writer *w, const char *key);
void bpt_json_close_object(bpt_json_writer *w);
void bpt_json_close_array(bpt_json_writer *w);
void bpt_json_put_u64(bpt_json_writer *w, const char *key, uint64_t value);
void bpt_json_put_i64(bpt_json_writer *w, const char *key, int64_t value);
/** Shortest of "%.9g" (floats round-trip) and "%.17g" (doubles do) that reads back equal. */
void bpt_json_put_real(bpt_json_writer *w, const char *key, double value);
void bpt_json_put_text(bpt_json_writer *w, const char *key, const char *value);
void bpt_json_put_bool(bpt_json_writer *w, const char *key, bool value);
void bpt_json_put_null(bpt_json_writer *w, const char *key);

/** Ends the text. @param[out] text borrowed from the writer, 0-terminated, no newline at the end
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL (nested deeper than BPT_JSON_DEPTH) */
bpt_status bpt_json_end_text(bpt_json_writer *w, const char **text, size_t *length);

/** Empties the writer for the next text and keeps its memory. */
void bpt_json_reset(bpt_json_writer *w);

void bpt_json_free(bpt_json_writer *w);

/* ---- reading ---- */

typedef struct bpt_json_doc bpt_json_doc;
typedef struct bpt_json bpt_json; /* a value inside a document: borrowed from it */

/** Parses one JSON value. Duplicate keys and trailing text are errors.
 * @param what names the text in errors, e.g. its path; copied
 * @param[out] doc caller owns, bpt_json_doc_free()
 * @return BPT_OK, BPT_EDATA (text with line), BPT_ENOMEM */
bpt_status bpt_json_parse(const char *what, const char *text, size_t length, bpt_json_doc **doc);

/** Reads a file and parses it. @return as bpt_file_read() and bpt_json_parse() */
bpt_status bpt_json_load(const char *path, size_t max_bytes, bpt_json_doc **doc);
void bpt_json_doc_free(bpt_json_doc *doc);
const bpt_json *bpt_json_root(const bpt_json_doc *doc);

bool bpt_json_is_object(const bpt_json *v);
bool bpt_json_is_array(const bpt_json *v);

/** @return number of items of an array or object, 0 for any other value */
size_t bpt_json_size(const bpt_json *v);

/** @return item @p i of an array, NULL outside of it */
const bpt_json *bpt_json_at(const bpt_json *array, size_t i);

/** @return key and value number @p i of an object in the order of the text (linear time), NULL
 * outside of it */
const bpt_json *bpt_json_member(const bpt_json *object, size_t i, const char **key);

/** @return the value at @p key, NULL if there is none */
const bpt_json *bpt_json_find(const bpt_json *object, const char *key);

/* Typed access with checks. Whole numbers go up to 2^63-1: a text with a larger one is refused.
 * @p v may be NULL, which is reported as a missing value. @p key is the
 * member of object @p v to read, or NULL to read @p v itself.
 * @return BPT_OK, BPT_EDATA (missing, another type, or outside of the range; names key and
 * document) */
bpt_status bpt_json_get_object(const bpt_json_doc *d, const bpt_json *v, const char *key,
                               const bpt_json **out);
bpt_status bpt_json_get_array(const bpt_json_doc *d, const bpt_json *v, const char *key,
                              const bpt_json **out);
bpt_status bpt_json_get_u64(const bpt_json_doc *d, const bpt_json *v, const char *key, uint64_t min,
                            uint64_t max, uint64_t *out);
bpt_status bpt_json_get_real(const bpt_json_doc *d, const bpt_json *v, const char *key,
                             double *out);
/** @param[out] out borrowed from the document */
bpt_status bpt_json_get_text(const bpt_json_doc *d, const bpt_json *v, const char *key,
                             const char **out);
bpt_status bpt_json_get_bool(const bpt_json_doc *d, const bpt_json *v, const char *key, bool *out);

#endif
