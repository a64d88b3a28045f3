#include "tools/tuned_key.h"

#include "base/text.h"
#include "inner/cpu/cpu_library.h"

#include <sys/utsname.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *option;
} fields[] = {
#define X(field, name, option) {name, option},
    BPT_TUNED_KEY_LIST(X)
#undef X
};

const char *bpt_tuned_field_name(bpt_tuned_field field) {
    return fields[field].name;
}

/* ---- making ---- */

static char *value_of(bpt_tuned_key *key, bpt_tuned_field field) {
    return key->value[field];
}

/* "model name : Intel(R) ..." of the first processor; where the kernel has no such line, the name
 * of the architecture. */
static void name_processor(char *text) {
    char line[256];
    struct utsname system;
    FILE *file = fopen("/proc/cpuinfo", "r");
    text[0] = '\0';
    while (file && !text[0] && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
            (void)sscanf(strchr(line, ':') + 1, " %95[^\n]", text);
    if (file) fclose(file);
    if (!text[0] && uname(&system) == 0)
        snprintf(text, BPT_TUNED_VALUE_SIZE, "%.64s", system.machine);
}

static void set_number(bpt_tuned_key *key, bpt_tuned_field field, int64_t number) {
    snprintf(value_of(key, field), BPT_TUNED_VALUE_SIZE, "%" PRId64, number);
}

static void set_text(bpt_tuned_key *key, bpt_tuned_field field, const char *text) {
    bpt_text_escape(text, value_of(key, field), BPT_TUNED_VALUE_SIZE); /* names are anybody's */
}

static const char none[] = "none";

/* Decoding takes more than all else that loading does. */
static const char *name_images(const bpt_dataset *dataset) {
    if (!dataset) return none;
    return bpt_dataset_describe(dataset)->encoded ? "encoded" : "raw";
}

bpt_status bpt_tuned_key_make(const bpt_tuned_step *step, bpt_tuned_key *key) {
    const bpt_model *model = step->model;
    const bpt_shape in = model->input;
    *key = (bpt_tuned_key){0};
    set_text(key, BPT_TUNED_BPT, BPT_VERSION);
    bpt_cpu_library(value_of(key, BPT_TUNED_LIBRARY), BPT_TUNED_VALUE_SIZE);
    name_processor(value_of(key, BPT_TUNED_CPU));
    snprintf(value_of(key, BPT_TUNED_INSTRUCTIONS), BPT_TUNED_VALUE_SIZE, "0x%x",
             bpt_cpu_instructions());
    set_number(key, BPT_TUNED_CORES, step->cores);
    set_text(key, BPT_TUNED_MODEL, model->name);
    snprintf(value_of(key, BPT_TUNED_INPUT), BPT_TUNED_VALUE_SIZE,
             "%" PRId64 "x%" PRId64 "x%" PRId64, in.c, in.h, in.w);
    set_number(key, BPT_TUNED_CLASSES, model->classes);
    set_number(key, BPT_TUNED_BATCH, step->batch);
    set_text(key, BPT_TUNED_PRECISION, step->activations == BPT_BF16 ? "bf16" : "fp32");
    set_text(key, BPT_TUNED_OPTIMIZER, step->optimizer);
    set_text(key, BPT_TUNED_IMAGES, name_images(step->dataset));
    uint64_t layers; /* of two models of the same name one may have been edited */
    BPT_TRY(bpt_model_identify(model, &layers));
    snprintf(value_of(key, BPT_TUNED_LAYERS), BPT_TUNED_VALUE_SIZE, "%016" PRIx64, layers);
    return BPT_OK;
}

/* ---- comparing ---- */

static void give_hint(bpt_tuned_field field, const char *here) {
    if (field == BPT_TUNED_CORES)
        bpt_hint(
            "run bpt-tune again with %s core%s (taskset -c), or leave out --tuned; ranks that may "
            "use the same cores share them",
            here, strcmp(here, "1") == 0 ? "" : "s");
    else if (!fields[field].option)
        bpt_hint(
            "run bpt-tune again on this machine, or leave out --tuned; `--tuned %%h.yaml` "
            "takes another file on every host");
    else if (field == BPT_TUNED_BATCH || field == BPT_TUNED_PRECISION ||
             field == BPT_TUNED_OPTIMIZER)
        bpt_hint("run bpt-tune again with %s %s, or leave out --tuned", fields[field].option, here);
    else
        bpt_hint("run bpt-tune again with the %s of this command, or leave out --tuned",
                 fields[field].option);
}

static bool is_same(bpt_tuned_field field, const char *file, const char *here) {
    if (field == BPT_TUNED_IMAGES && (strcmp(file, none) == 0 || strcmp(here, none) == 0))
        return true;
    return strcmp(file, here) == 0;
}

bpt_status bpt_tuned_key_check(const char *path, const bpt_tuned_key *file,
                               const bpt_tuned_key *here, const char *where) {
    for (int i = 0; i < BPT_N_TUNED_FIELDS; i++) {
        if (is_same((bpt_tuned_field)i, file->value[i], here->value[i])) continue;
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "%s was tuned for %s \"%s\", %s%s is \"%s\"", path, fields[i].name,
                     file->value[i], where ? "that of this run on " : "that of this run",
                     where ? where : "", here->value[i]);
        give_hint((bpt_tuned_field)i, here->value[i]);
        return status;
    }
    return BPT_OK;
}
