/* Values are written straight from the flat vector and read straight into it, after every number in
 * the header has been checked against the table and the size of the file. */
#include "inner/weights/safetensors.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

enum { LENGTH_BYTES = 8, DATA_ALIGNMENT = 64, MAX_HEADER_BYTES = 16 << 20, MOST_OTHERS = 4096 };

static const char METADATA_KEY[] = "__metadata__";

/* ---- writing ---- */

static void put_header(bpt_json_writer *w, const bpt_segments *s, const bpt_metadata *metadata,
                       size_t n_metadata) {
    bpt_json_open_object(w, NULL);
    if (n_metadata > 0) {
        bpt_json_open_object(w, METADATA_KEY);
        for (size_t i = 0; i < n_metadata; i++)
            bpt_json_put_text(w, metadata[i].key, metadata[i].value);
        bpt_json_close_object(w);
    }
    for (size_t i = 0; i < s->n; i++) {
        const bpt_segment *t = &s->items[i];
        bpt_json_open_object(w, t->name);
        bpt_json_put_text(w, "dtype", "F32");
        bpt_json_open_array(w, "shape");
        for (int d = 0; d < t->n_dims; d++) bpt_json_put_i64(w, NULL, t->dims[d]);
        bpt_json_close_array(w);
        bpt_json_open_array(w, "data_offsets");
        bpt_json_put_u64(w, NULL, t->offset * sizeof(float));
        bpt_json_put_u64(w, NULL, (t->offset + t->count) * sizeof(float));
        bpt_json_close_array(w);
        bpt_json_close_object(w);
    }
    bpt_json_close_object(w);
}

bpt_status bpt_safetensors_write(const char *path, const bpt_segments *s, const float *values,
                                 const bpt_metadata *metadata, size_t n_metadata) {
    bpt_json_writer w = {0};
    bpt_status status;
    const char *header;
    char *head = NULL; /* length and padded header */
    size_t length;
    put_header(&w, s, metadata, n_metadata);
    BPT_TRY_GOTO(status, bpt_json_end_text(&w, &header, &length), free_writer);
    const size_t start =
        (LENGTH_BYTES + length + DATA_ALIGNMENT - 1) & ~(size_t)(DATA_ALIGNMENT - 1);
    BPT_TRY_GOTO(status, BPT_NEW("weight file header", start, &head), free_writer);
    const uint64_t padded = start - LENGTH_BYTES;
    memcpy(head, &padded, LENGTH_BYTES);
    memset(head + LENGTH_BYTES, ' ', padded);
    memcpy(head + LENGTH_BYTES, header, length);
    const bpt_bytes parts[] = {{head, start}, {values, s->n_elements * sizeof *values}};
    status = bpt_file_write_parts(path, parts, 2);
    bpt_free(head);
free_writer:
    bpt_json_free(&w);
    return status;
}

/* ---- reading ---- */

/* Where a tensor's bytes are, counted from the end of the header. */
typedef struct {
    const bpt_segment *segment; /* NULL: passed over */
    const char *name;
    uint64_t from, to;
} range;

typedef struct {
    const char *path;
    int fd;
    uint64_t header_bytes, data_bytes;
    bpt_json_doc *header;
    const bpt_segments *segments;
    const char *except; /* names of layers, "a,b"; NULL: none */
    range *ranges;      /* shape [segments->n + tensors of the file] */
    size_t n_ranges;
    size_t n_alike; /* once tensors are not as in the model: how many of its are */
} reader;

static bpt_status read_at(const reader *r, void *to, size_t bytes, uint64_t offset) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(r->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_errno(errno, "read", r->path);
        if (n == 0) return bpt_fail(BPT_EIO, "cannot read %s: it became shorter", r->path);
        done += (size_t)n;
    }
    return BPT_OK;
}

static bpt_status measure(reader *r, uint64_t size) {
    if (size < LENGTH_BYTES)
        return bpt_fail(BPT_EDATA, "%s: %" PRIu64 " bytes are too few for a safetensors file",
                        r->path, size);
    BPT_TRY(read_at(r, &r->header_bytes, LENGTH_BYTES, 0));
    if (r->header_bytes > size - LENGTH_BYTES || r->header_bytes > MAX_HEADER_BYTES) {
        (void)bpt_fail(BPT_EDATA,
                       "%s: not a safetensors file: header of %" PRIu64
                       " bytes in a file of %" PRIu64,
                       r->path, r->header_bytes, size);
        /* a zip archive, as torch.save() writes, or a pickle, as it did before */
        if (memcmp(&r->header_bytes, "PK\3\4", 4) == 0 ||
            memcmp(&r->header_bytes, "\x80\2", 2) == 0)
            bpt_hint("PyTorch writes one with safetensors.torch.save_file(); see docs/formats.md");
        return BPT_EDATA;
    }
    r->data_bytes = size - LENGTH_BYTES - r->header_bytes;
    return BPT_OK;
}

static bpt_status read_header(reader *r) {
    char *text;
    BPT_TRY(BPT_NEW("weight file header", r->header_bytes, &text));
    bpt_status status = read_at(r, text, r->header_bytes, LENGTH_BYTES);
    if (status == BPT_OK) status = bpt_json_parse(r->path, text, r->header_bytes, &r->header);
    bpt_free(text);
    BPT_TRY(status);
    if (!bpt_json_is_object(bpt_json_root(r->header)))
        return bpt_fail(BPT_EDATA, "%s: the header is not a JSON object", r->path);
    return BPT_OK;
}

static bpt_status fail_tensor(const reader *r, const char *name, const char *text) {
    return bpt_fail(BPT_EDATA, "%s: tensor %s: %s", r->path, name, text);
}

static bool has_shape(const reader *r, const bpt_json *tensor, const bpt_segment *t) {
    const bpt_json *shape = bpt_json_find(tensor, "shape");
    bool same = bpt_json_is_array(shape) && bpt_json_size(shape) == (size_t)t->n_dims;
    for (int d = 0; same && d < t->n_dims; d++) {
        uint64_t n;
        same = bpt_json_get_u64(r->header, bpt_json_at(shape, (size_t)d), NULL, 0, INT64_MAX, &n) ==
                   BPT_OK &&
               n == (uint64_t)t->dims[d];
    }
    return same;
}

static bpt_status check_shape(const reader *r, const bpt_json *tensor, const bpt_segment *t) {
    if (has_shape(r, tensor, t)) return BPT_OK;
    char dims[80] = "", text[140];
    for (int d = 0; d < t->n_dims; d++) {
        char dim[24];
        snprintf(dim, sizeof dim, "%" PRId64, t->dims[d]);
        bpt_list_add(dims, sizeof dims, dim);
    }
    snprintf(text, sizeof text, "its shape is not the one of the model, which is [%s]", dims);
    return fail_tensor(r, t->name, text);
}

/* @param t NULL: a tensor that is passed over */
static bpt_status read_range(reader *r, const bpt_json *tensor, const char *name,
                             const bpt_segment *t) {
    const bpt_json *offsets = bpt_json_find(tensor, "data_offsets");
    range *out = &r->ranges[r->n_ranges++];
    *out = (range){.segment = t, .name = name};
    if (!bpt_json_is_array(offsets) || bpt_json_size(offsets) != 2 ||
        bpt_json_get_u64(r->header, bpt_json_at(offsets, 0), NULL, 0, r->data_bytes, &out->from) !=
            BPT_OK ||
        bpt_json_get_u64(r->header, bpt_json_at(offsets, 1), NULL, out->from, r->data_bytes,
                         &out->to) != BPT_OK) {
        (void)fail_tensor(r, name, "its data_offsets are not two numbers inside of the file");
        bpt_hint("the file may be cut short: copy it anew from where it was written");
        return BPT_EDATA;
    }
    if (t && out->to - out->from != t->count * sizeof(float))
        return fail_tensor(r, name, "its data_offsets do not fit its shape");
    return BPT_OK;
}

static bpt_status check_dtype(const reader *r, const bpt_json *tensor, const bpt_segment *t) {
    const char *dtype;
    char text[64] = "it has no dtype";
    if (bpt_json_get_text(r->header, tensor, "dtype", &dtype) == BPT_OK) {
        if (strcmp(dtype, "F32") == 0) return BPT_OK;
        snprintf(text, sizeof text, "its dtype is %.24s, not F32", dtype);
    }
    (void)fail_tensor(r, t->name, text);
    bpt_hint("save the weights as float32");
    return BPT_EDATA;
}

static bpt_status check_tensor(reader *r, const bpt_segment *t) {
    const bpt_json *tensor = bpt_json_find(bpt_json_root(r->header), t->name);
    if (!tensor) return fail_tensor(r, t->name, "the model has it and the file does not");
    if (!bpt_json_is_object(tensor)) return fail_tensor(r, t->name, "not a JSON object");
    BPT_TRY(check_dtype(r, tensor, t));
    BPT_TRY(check_shape(r, tensor, t));
    return read_range(r, tensor, t->name, t);
}

/* ---- what is passed over ---- */

/* @param layer of so many bytes, with more behind them
 * @return whether it is the layer whose tensor has this name: a dot follows there */
static bool is_of_layer(const char *name, const char *layer, size_t length) {
    return strncmp(name, layer, length) == 0 && name[length] == '.';
}

bool bpt_safetensors_excepts(const char *except, const char *tensor) {
    for (const char *layer = except; layer && *layer; layer += strspn(layer, ",")) {
        const size_t length = strcspn(layer, ",");
        if (is_of_layer(tensor, layer, length)) return true;
        layer += length;
    }
    return false;
}

/* @return whether PyTorch has it in the files of every batch norm; the mean of all batches, which
 * alone needs that count, is none of ours */
static bool is_count(const char *name) {
    static const char suffix[] = ".num_batches_tracked";
    const size_t length = strlen(name), end = sizeof suffix - 1;
    return length > end && strcmp(name + length - end, suffix) == 0;
}

static bool is_segment(const bpt_segments *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].name, name) == 0) return true;
    return false;
}

/* @return whether @p name is that of a tensor, and not of a segment that is read */
static bool is_beside(const reader *r, const char *name) {
    return strcmp(name, METADATA_KEY) != 0 &&
           (bpt_safetensors_excepts(r->except, name) || !is_segment(r->segments, name));
}

/* Of members of the header: each is found in linear time. */
static size_t most_looked_at(const reader *r) {
    return r->segments->n + MOST_OTHERS;
}

/* @return whether nothing is known of a tensor that the file alone has */
static bool is_stranger(const reader *r, const char *name) {
    return is_beside(r, name) && !bpt_safetensors_excepts(r->except, name) && !is_count(name);
}

/* Of a file that has all that the model has: beside the tensor in the error, what else is not the
 * model's. */
static void hint_at_strangers(reader *r, const char *first) {
    const bpt_json *root = bpt_json_root(r->header);
    const size_t n = bpt_json_size(root), most = most_looked_at(r);
    const char *name;
    char others[160] = "";
    for (size_t i = 0; i < n && i < most; i++) {
        (void)bpt_json_member(root, i, &name);
        if (is_stranger(r, name) && strcmp(name, first) != 0)
            bpt_list_add(others, sizeof others, name);
    }
    for (size_t i = 0; i < r->segments->n; i++)
        r->n_alike += !bpt_safetensors_excepts(r->except, r->segments->items[i].name);
    bpt_hint("the file may belong to another model%s%s",
             others[0] ? "; not of the model are also " : "", others);
}

/* Tensors of the file that are read into no segment: named, or known to mean nothing. */
static bpt_status check_others(reader *r) {
    const bpt_json *root = bpt_json_root(r->header);
    const size_t n = bpt_json_size(root), most = most_looked_at(r);
    const char *name;
    for (size_t i = 0; i < n && i < most; i++) {
        const bpt_json *tensor = bpt_json_member(root, i, &name);
        if (is_stranger(r, name)) {
            (void)fail_tensor(r, name, "the file has it and the model does not");
            hint_at_strangers(r, name);
            return BPT_EDATA;
        }
        if (!is_beside(r, name)) continue;
        if (!bpt_json_is_object(tensor)) return fail_tensor(r, name, "not a JSON object");
        BPT_TRY(read_range(r, tensor, name, NULL));
    }
    if (n <= most) return BPT_OK;
    return bpt_fail(BPT_EDATA, "%s: %zu tensors, the model has %zu", r->path, n, r->segments->n);
}

static bool is_layer_of_model(const reader *r, const char *layer, size_t length) {
    for (size_t i = 0; i < r->segments->n; i++)
        if (is_of_layer(r->segments->items[i].name, layer, length)) return true;
    return false;
}

static bool is_layer_of_file(const reader *r, const char *layer, size_t length) {
    const bpt_json *root = bpt_json_root(r->header);
    const size_t most = most_looked_at(r);
    const char *name;
    for (size_t i = 0; i < most && bpt_json_member(root, i, &name); i++)
        if (is_of_layer(name, layer, length)) return true;
    return false;
}

/* A name of the list that nothing has was mistyped. */
static bpt_status check_names(const reader *r) {
    for (const char *layer = r->except; layer && *layer; layer += strspn(layer, ",")) {
        const size_t length = strcspn(layer, ",");
        if (!is_layer_of_model(r, layer, length) && !is_layer_of_file(r, layer, length))
            return bpt_fail(BPT_EUSAGE,
                            "neither the model nor %s has a layer \"%.*s\" with weights", r->path,
                            (int)length, layer);
        layer += length;
    }
    return BPT_OK;
}

/* An empty one comes before that which begins where it lies. */
static int compare_ranges(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* The format allows neither overlaps nor holes. */
static bpt_status check_ranges(const reader *r) {
    uint64_t end = 0;
    qsort(r->ranges, r->n_ranges, sizeof *r->ranges, compare_ranges);
    for (size_t i = 0; i < r->n_ranges; i++) {
        const range *t = &r->ranges[i];
        if (t->from != end)
            return fail_tensor(r, t->name,
                               t->from < end ? "its data overlap with another tensor's"
                                             : "there is a hole before its data");
        end = t->to;
    }
    if (end == r->data_bytes) return BPT_OK;
    return bpt_fail(BPT_EDATA, "%s: %" PRIu64 " bytes follow the last tensor", r->path,
                    r->data_bytes - end);
}

/* Beside the tensor in the error: what else is missing or of another shape. */
static void hint_at_model(reader *r, const bpt_segment *first) {
    const bpt_json *root = bpt_json_root(r->header);
    bpt_error error;
    char others[160] = "";
    bpt_error_get(&error); /* looking at shapes may record others */
    for (const bpt_segment *t = r->segments->items; t < r->segments->items + r->segments->n; t++) {
        const bpt_json *tensor = bpt_json_find(root, t->name);
        if (bpt_safetensors_excepts(r->except, t->name)) continue;
        if (tensor && has_shape(r, tensor, t))
            r->n_alike++;
        else if (t != first)
            bpt_list_add(others, sizeof others, t->name);
    }
    (void)bpt_error_put(&error);
    bpt_hint("the file may belong to another model, or to another number of classes%s%s",
             others[0] ? "; not as in the model are also " : "", others);
}

static bpt_status check_header(reader *r) {
    BPT_TRY(check_names(r));
    for (size_t i = 0; i < r->segments->n; i++) {
        if (bpt_safetensors_excepts(r->except, r->segments->items[i].name)) continue;
        const bpt_status status = check_tensor(r, &r->segments->items[i]);
        if (status == BPT_OK) continue;
        if (!bpt_error_last()->hint[0]) hint_at_model(r, &r->segments->items[i]);
        return status;
    }
    BPT_TRY(check_others(r));
    return check_ranges(r);
}

static bpt_status read_values(const reader *r, float *values) {
    const uint64_t start = LENGTH_BYTES + r->header_bytes;
    for (size_t i = 0; i < r->n_ranges; i++) {
        const range *t = &r->ranges[i];
        if (t->segment)
            BPT_TRY(read_at(r, values + t->segment->offset, t->to - t->from, start + t->from));
    }
    return BPT_OK;
}

bpt_status bpt_safetensors_read(const char *path, const bpt_segments *s, float *values) {
    return bpt_safetensors_read_except(path, s, NULL, values, NULL);
}

bpt_status bpt_safetensors_read_except(const char *path, const bpt_segments *s, const char *except,
                                       float *values, size_t *n_alike) {
    reader r = {.path = path, .segments = s, .except = except};
    uint64_t bytes;
    if (n_alike) *n_alike = 0;
    BPT_TRY(bpt_file_open(path, &r.fd, &bytes));
    bpt_status status;
    BPT_TRY_GOTO(status, measure(&r, bytes), done);
    BPT_TRY_GOTO(status, read_header(&r), done);
    BPT_TRY_GOTO(status, BPT_NEW("tensor ranges", s->n + most_looked_at(&r), &r.ranges), done);
    BPT_TRY_GOTO(status, check_header(&r), done);
    status = read_values(&r, values);
done:
    if (n_alike) *n_alike = r.n_alike;
    bpt_free(r.ranges);
    bpt_json_doc_free(r.header);
    close(r.fd);
    return status;
}
