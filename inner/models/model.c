/* From a description to layers with shapes: the file is read in one pass (model_read.c), shapes are
 * inferred in a second. */
#include "inner/models/model.h"

#include "base/file.h"
#include "base/memory.h"
#include "inner/models/model_parts.h"

#include <inttypes.h>

bool bpt__shape_is_allowed(bpt_shape s) {
    int64_t n;
    return s.c >= 1 && s.h >= 1 && s.w >= 1 && !__builtin_mul_overflow(s.c, s.h, &n) &&
           !__builtin_mul_overflow(n, s.w, &n) && n <= BPT__MAX_ACTIVATION;
}

/* ---- shapes ---- */

/* Puts file, line and layer before the last error, which says what and why. */
static bpt_status locate_failure(const bpt_model *m, const bpt_layer *l) {
    bpt_error e;
    bpt_error_get(&e);
    bpt_error_record(e.status, "%s:%d: layer %s: %s", m->source, l->line, l->name, e.text);
    if (e.hint[0])
        bpt_hint("%s", e.hint);
    else if (e.status == BPT_EUSAGE)
        bpt_hint("the input of the model is %" PRId64 "x%" PRId64 "x%" PRId64, m->input.c,
                 m->input.h, m->input.w);
    return e.status;
}

static bpt_status infer_layer(bpt_layer *l, bpt_segments *s) {
    l->first_segment = s->n;
    BPT_TRY(l->kind->infer(l, s));
    l->n_segments = s->n - l->first_segment;
    if (bpt__shape_is_allowed(l->out)) return BPT_OK;
    return bpt_fail(BPT_EUSAGE,
                    "the output %" PRId64 "x%" PRId64 "x%" PRId64 " is larger than %d values",
                    l->out.c, l->out.h, l->out.w, BPT__MAX_ACTIVATION);
}

static bpt_status check_output(const bpt_model *m, const bpt_layer *last) {
    if (last->out.c == m->classes && last->out.h == 1 && last->out.w == 1) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE,
        "%s:%d: layer %s: the last layer gives %" PRId64 "x%" PRId64 "x%" PRId64 ", not %" PRId64
        "x1x1: one value for each class",
        m->source, last->line, last->name, last->out.c, last->out.h, last->out.w, m->classes);
    bpt_hint("end the model with \"- fc: {outputs: classes}\"");
    return status;
}

static void take_input_shapes(const bpt_model *m, bpt_layer *l) {
    for (size_t j = 0; j < l->n_inputs; j++)
        l->ins[j] = l->inputs[j] ? m->layers[l->inputs[j] - 1].out : m->input;
    l->in = l->ins[0];
}

static bpt_status infer_shapes(bpt_model *m) {
    for (size_t i = 0; i < m->n_layers; i++) {
        bpt_layer *l = &m->layers[i];
        take_input_shapes(m, l);
        const bpt_status status = infer_layer(l, &m->segments);
        if (status != BPT_OK) return locate_failure(m, l);
    }
    BPT_TRY(check_output(m, &m->layers[m->n_layers - 1]));
    if (m->segments.n > 0) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%s: there is nothing to train: no layer has weights", m->source);
    bpt_hint("put a layer that learns in, e.g. \"- fc: {outputs: classes}\" at the end");
    return status;
}

/* ---- public ---- */

/* Errors that propose nothing themselves say where to read on. */
static bpt_status with_hint(bpt_status status) {
    if (status == BPT_EUSAGE && !bpt_error_last()->hint[0])
        bpt_hint("docs/models.md has the format: all keys, kinds of layers, fields and limits");
    return status;
}

static bpt_status build(const bpt_yaml *doc, const bpt_model_override *override, bpt_model **out) {
    bpt_model *m;
    bpt_status status;
    BPT_TRY(BPT_NEW("model", 1, &m));
    BPT_TRY_GOTO(status, bpt_strdup(bpt_yaml_name(doc), &m->source), err_free);
    BPT_TRY_GOTO(status, bpt__model_read(doc, override, m), err_free);
    BPT_TRY_GOTO(status, infer_shapes(m), err_free);
    bpt__model_fuse(m);
    *out = m;
    return BPT_OK;
err_free:
    bpt_model_free(m);
    return status;
}

bpt_status bpt_model_parse(const char *source, const char *text, size_t size,
                           const bpt_model_override *override, bpt_model **model) {
    bpt_yaml *doc;
    bpt_status status = bpt_yaml_parse(source, text, size, &doc);
    if (status != BPT_OK) return with_hint(status);
    status = build(doc, override, model);
    bpt_yaml_free(doc);
    return with_hint(status);
}

bpt_status bpt_model_load(const char *name_or_path, const bpt_model_override *override,
                          bpt_model **model) {
    char *path, *text = NULL;
    size_t size;
    BPT_TRY(bpt__model_find(name_or_path, &path));
    const bool exists = bpt_path_exists(path);
    bpt_status status = bpt_yaml_read(path, &text, &size);
    if (status == BPT_EUSAGE && !exists)
        bpt_hint("check the path, or give the name of a built-in model, e.g. lenet");
    if (status == BPT_OK) status = bpt_model_parse(path, text, size, override, model);
    bpt_free(path);
    if (status != BPT_OK) {
        bpt_free(text);
        return with_hint(status);
    }
    (*model)->text = text;
    (*model)->text_bytes = size;
    return BPT_OK;
}

bool bpt_model_is_there(const char *name_or_path) {
    bpt_error error;
    char *path;
    bpt_error_get(&error);
    const bool found = bpt__model_find(name_or_path, &path) == BPT_OK;
    const bool there = found && bpt_path_exists(path);
    if (found) bpt_free(path);
    (void)bpt_error_put(&error);
    return there;
}

void bpt_model_free(bpt_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->n_layers; i++) {
        bpt_free(model->layers[i].config);
        bpt_free(model->layers[i].inputs);
        bpt_free(model->layers[i].ins);
    }
    bpt_free(model->layers);
    bpt_segments_clear(&model->segments);
    bpt_free(model->name);
    bpt_free(model->source);
    bpt_free(model->text);
    bpt_free(model);
}
