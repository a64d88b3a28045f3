#include "base/memory.h"
#include "storage/dataset/dataset_private.h"
#include "storage/dataset/record_decode.h"
#include "storage/dataset/statistics.h"
#include "storage/environment/environment.h"

#include <math.h>
#include <string.h>

enum { VALUES_PER_REPORT = 64 };

typedef struct verification {
    const bpt_dataset *dataset;
    bpt_verify_progress progress;
    void *arg;
    uint64_t n_total, n_done, n_sound;
    uint64_t n_damaged;         /* values */
    bpt_error first;            /* of the damaged ones */
    bpt_image_decoder *decoder; /* of an encoded dataset, as what follows */
    uint8_t *pixels;            /* of an image */
    size_t pixels_capacity;
} verification;

static bool is_within(const bpt_extent *e, const bpt_record *r) {
    return r->H >= e->least_H && r->H <= e->most_H && r->W >= e->least_W && r->W <= e->most_W &&
           (uint64_t)r->H * r->W <= e->most_pixels;
}

static bool has_sums(const bpt_record *a, const bpt_record *b, uint32_t C) {
    const size_t size = C * sizeof *a->sum;
    return memcmp(a->sum, b->sum, size) == 0 && memcmp(a->square, b->square, size) == 0;
}

/* @param[in,out] bytes of files so far */
static bpt_status check_encoded(verification *v, const bpt_split *split, uint32_t i,
                                bpt__statistics *statistics, uint64_t *bytes) {
    const bpt_dataset *d = v->dataset;
    const uint32_t C = d->info->C;
    bpt_record record;
    uint32_t label;
    BPT_TRY(bpt_dataset_get_record(d, split, i, &record, &label));
    if (!is_within(&split->extent, &record))
        return bpt__dataset_damaged(d, split, i, "its size is not among those of its split");
    const bpt_image_fit as_is = {0};
    const bpt_image_frame frame = bpt_image_fit_frame(&as_is, record.H, record.W);
    const size_t size = (size_t)C * record.H * record.W;
    BPT_TRY(BPT_GROW("image", size, &v->pixels, &v->pixels_capacity));
    BPT_TRY(bpt_record_decode(v->decoder, d, split, i, &record, &frame, v->pixels));
    bpt_record found = record;
    bpt_record_measure(&found, v->pixels, C);
    if (!has_sums(&found, &record, C))
        return bpt__dataset_damaged(d, split, i, "its pixels are not those that were stored");
    *bytes += record.size;
    bpt__statistics_add_sums(statistics, (uint64_t)record.H * record.W, record.sum, record.square,
                             label);
    return BPT_OK;
}

static bpt_status check_value(verification *v, const bpt_split *split, uint32_t number,
                              bpt__statistics *statistics) {
    const bpt__stored_value value = v->dataset->records[split->number].values[number];
    const bpt__value_place place = bpt__dataset_place(v->dataset, split, number);
    const size_t record_bytes = v->dataset->record_bytes;
    if (!bpt__value_intact(value.data, value.size, &place))
        return bpt__dataset_damaged(v->dataset, split, number, "checksum mismatch");
    for (size_t k = 0; k < place.n; k++) {
        const uint32_t label = bpt__value_label(value.data, k);
        if (label >= v->dataset->info->n_classes)
            return bpt__dataset_damaged(v->dataset, split, number, "a label is out of range");
        bpt__statistics_add(statistics, bpt__value_pixels(value.data, record_bytes, place.n, k),
                            label);
    }
    return BPT_OK;
}

static bpt_status compare_statistics(const bpt_dataset *d, const bpt_split *split,
                                     const bpt__statistics *s, uint64_t bytes) {
    const char *wrong = NULL;
    double *mean = NULL, *std = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("means", s->C, &mean), done);
    BPT_TRY_GOTO(status, BPT_NEW("deviations", s->C, &std), done);
    bpt__statistics_finish(s, mean, std);
    for (uint32_t i = 0; i < s->n_classes; i++)
        if (s->per_class[i] != split->per_class[i]) wrong = "records per class";
    for (size_t c = 0; c < s->C; c++)
        if (fabs(mean[c] - split->mean[c]) > 1e-9 || fabs(std[c] - split->std[c]) > 1e-9)
            wrong = "mean or standard deviation";
    if (d->info->encoded && (s->n_pixels != split->extent.pixels || bytes != split->extent.bytes))
        wrong = "sizes";
    if (wrong)
        status = bpt_fail(BPT_ECORRUPT, "dataset %s is damaged: split %s: wrong %s in its schema",
                          d->info->path, split->name, wrong);
done:
    bpt_free(mean);
    bpt_free(std);
    return status;
}

/* @param status of a value, or of what a split is described by
 * @return BPT_ENOMEM; else BPT_OK, damage is counted: the caller reports it, together with the rest
 */
static bpt_status note(verification *v, bpt_status status) {
    if (status == BPT_OK || status == BPT_ENOMEM) return status;
    if (v->n_damaged++ == 0) bpt_error_get(&v->first);
    return BPT_OK;
}

static bpt_status verify_split(verification *v, const bpt_split *split) {
    const bpt_dataset *d = v->dataset;
    const bpt_dataset_info *info = d->info;
    bpt__statistics statistics;
    BPT_TRY(bpt__statistics_init(&statistics, info->C, (size_t)info->H * info->W, info->n_classes));
    const uint64_t damaged_before = v->n_damaged;
    uint64_t bytes = 0;
    bpt_status status = BPT_OK;
    for (uint32_t i = 0; i < d->records[split->number].n_values; i++) {
        const uint32_t n = bpt__dataset_place(d, split, i).n;
        status = info->encoded ? check_encoded(v, split, i, &statistics, &bytes)
                               : check_value(v, split, i, &statistics);
        if (status == BPT_OK) v->n_sound += n;
        BPT_TRY_GOTO(status, note(v, status), done);
        v->n_done += n;
        if (v->n_damaged > damaged_before && bpt_dataset_check(d) != BPT_OK) break;
        if (v->progress && i % VALUES_PER_REPORT == 0) v->progress(v->arg, v->n_done, v->n_total);
    }
    if (v->n_damaged == damaged_before)
        status = note(v, compare_statistics(d, split, &statistics, bytes));
done:
    bpt__statistics_free(&statistics);
    return status;
}

static bpt_status report_damage(const verification *v) {
    if (v->n_damaged == 0) return BPT_OK;
    if (v->n_damaged == 1) return bpt_error_put(&v->first);
    const bpt_status status = bpt_fail(v->first.status, "%s (and %llu more such places)",
                                       v->first.text, (unsigned long long)(v->n_damaged - 1));
    bpt_hint("%s", v->first.hint);
    return status;
}

bpt_status bpt_dataset_verify(const char *path, bpt_verify_progress progress, void *arg,
                              uint64_t *n_records) {
    *n_records = 0;
    bpt_dataset *dataset;
    BPT_TRY(bpt__dataset_open(path, true, &dataset));
    verification v = {.dataset = dataset, .progress = progress, .arg = arg};
    const bpt_dataset_info *info = dataset->info;
    bpt_status status = info->encoded ? bpt_image_decoder_open(NULL, &v.decoder) : BPT_OK;
    for (size_t s = 0; s < info->n_splits; s++) v.n_total += info->splits[s].count;
    for (size_t s = 0;
         s < info->n_splits && status == BPT_OK && !bpt__environment_lost(dataset->env); s++)
        status = verify_split(&v, &info->splits[s]);
    if (v.n_damaged > 0 && status != BPT_ENOMEM) status = report_damage(&v);
    status = bpt__environment_settle(dataset->env, status);
    *n_records = v.n_sound;
    bpt_image_decoder_close(v.decoder);
    bpt_free(v.pixels);
    bpt_dataset_close(dataset);
    return status;
}
