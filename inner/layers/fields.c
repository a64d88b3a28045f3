#include "inner/layers/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "layer conv1: kernel", as it stands in errors. */
typedef struct {
    char text[BPT_NAME_SIZE + 32];
} label;

static label label_of(const bpt_layer *l, const char *key) {
    label what;
    snprintf(what.text, sizeof what.text, "layer %s: %s", l->name, key);
    return what;
}

static const bpt_yaml_node *find(const bpt_yaml_node *fields, const char *key) {
    return fields ? bpt_yaml_find(fields, key) : NULL;
}

#define CHANNELS "a whole number or the word classes"
#define PAIR     "a whole number or a list [rows, columns]"

static bpt_status missing(const bpt_layer *l, const bpt_yaml *doc, const char *key,
                          const char *takes, const char *example) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s:%d: layer %s: %s is missing",
                                       bpt_yaml_name(doc), l->line, l->name, key);
    bpt_hint("%s takes %s, e.g. \"- %s: {%s: %s}\"", key, takes, l->kind->name, key, example);
    return status;
}

bpt_status bpt__field_channels(const bpt_layer *l, const bpt_model_scope *scope,
                               const bpt_yaml *doc, const bpt_yaml_node *fields, const char *key,
                               int64_t *out) {
    const bpt_yaml_node *n = find(fields, key);
    if (!n) return missing(l, doc, key, CHANNELS, "16");
    const char *text = bpt_yaml_text(n);
    if (text && strcmp(text, "classes") == 0) {
        *out = scope->classes;
        return BPT_OK;
    }
    const bpt_status status =
        bpt_yaml_get_int(doc, n, label_of(l, key).text, 1, BPT__MAX_CHANNELS, out);
    if (status != BPT_OK) bpt_hint("%s takes " CHANNELS, key);
    return status;
}

bpt_status bpt__field_pair(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, int64_t min, const int64_t *fallback, int64_t *out) {
    const bpt_yaml_node *n = find(fields, key);
    const label what = label_of(l, key);
    if (!n) {
        if (!fallback) return missing(l, doc, key, PAIR, "3");
        memcpy(out, fallback, 2 * sizeof *out);
        return BPT_OK;
    }
    if (bpt_yaml_node_kind(n) == BPT_YAML_SCALAR) {
        BPT_TRY(bpt_yaml_get_int(doc, n, what.text, min, BPT__MAX_WINDOW, &out[0]));
        out[1] = out[0];
        return BPT_OK;
    }
    if (bpt_yaml_node_kind(n) != BPT_YAML_LIST || bpt_yaml_size(n) != 2)
        return bpt_yaml_fail(doc, n, "%s must be " PAIR, what.text);
    for (size_t i = 0; i < 2; i++)
        BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(n, i), what.text, min, BPT__MAX_WINDOW, &out[i]));
    return BPT_OK;
}

bpt_status bpt__field_int(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                          const char *key, int64_t min, int64_t max, int64_t fallback,
                          int64_t *out) {
    const bpt_yaml_node *n = find(fields, key);
    *out = fallback;
    return n ? bpt_yaml_get_int(doc, n, label_of(l, key).text, min, max, out) : BPT_OK;
}

bpt_status bpt__field_real(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, double min, double max, double fallback, double *out) {
    const bpt_yaml_node *n = find(fields, key);
    *out = fallback;
    return n ? bpt_yaml_get_real(doc, n, label_of(l, key).text, min, max, out) : BPT_OK;
}

bpt_status bpt__field_bool(const bpt_layer *l, const bpt_yaml *doc, const bpt_yaml_node *fields,
                           const char *key, bool fallback, bool *out) {
    const bpt_yaml_node *n = find(fields, key);
    *out = fallback;
    return n ? bpt_yaml_get_bool(doc, n, label_of(l, key).text, out) : BPT_OK;
}

bpt_status bpt__no_fields(bpt_layer *l, const bpt_model_scope *scope, const bpt_yaml *doc,
                          const bpt_yaml_node *fields) {
    (void)l;
    (void)scope;
    (void)doc;
    (void)fields;
    return BPT_OK;
}

bpt_status bpt__same_shape(bpt_layer *l, bpt_segments *s) {
    (void)s;
    l->out = l->in;
    return BPT_OK;
}

uint64_t bpt__no_flops(const bpt_layer *l) {
    (void)l;
    return 0;
}

bpt_status bpt__window_infer(bpt_layer *l, const int64_t *kernel, const int64_t *stride,
                             const int64_t *pad) {
    const int64_t in[2] = {l->in.h, l->in.w};
    int64_t out[2];
    for (int i = 0; i < 2; i++) {
        const int64_t room = in[i] + 2 * pad[i] - kernel[i];
        if (room < 0) {
            char padding[64] = "";
            if (pad[0] || pad[1])
                snprintf(padding, sizeof padding, ", padded by %" PRId64 "x%" PRId64 ",", pad[0],
                         pad[1]);
            return bpt_fail(BPT_EUSAGE,
                            "the input %" PRId64 "x%" PRId64 "x%" PRId64
                            "%s is smaller than its kernel %" PRId64 "x%" PRId64,
                            l->in.c, l->in.h, l->in.w, padding, kernel[0], kernel[1]);
        }
        out[i] = room / stride[i] + 1;
    }
    l->out.h = out[0];
    l->out.w = out[1];
    return BPT_OK;
}

bpt_conv_problem bpt__window_problem(const bpt_layer *l, int64_t n, const int64_t *kernel,
                                     const int64_t *stride, const int64_t *pad) {
    return (bpt_conv_problem){
        .n = n,
        .c = l->in.c,
        .h = l->in.h,
        .w = l->in.w,
        .k = l->out.c,
        .p = l->out.h,
        .q = l->out.w,
        .r = kernel[0],
        .s = kernel[1],
        .stride = {stride[0], stride[1]},
        .pad = {pad[0], pad[1]},
        .dilation = {1, 1},
        .groups = 1,
    };
}

bpt_status bpt__weights_infer(const bpt_layer *l, bpt_segments *s, const int64_t *dims, int n_dims,
                              bool bias) {
    char name[BPT_NAME_SIZE];
    int64_t fan_in = 1;
    for (int d = 1; d < n_dims; d++) fan_in *= dims[d];
    snprintf(name, sizeof name, "%s.weight", l->name);
    BPT_TRY(bpt_segments_add(s, name, dims, n_dims,
                             (bpt_segment_role){.fan_in = fan_in, .decays = true}));
    if (!bias) return BPT_OK;
    snprintf(name, sizeof name, "%s.bias", l->name);
    return bpt_segments_add(s, name, dims, 1, (bpt_segment_role){0});
}
