/* The report for programs, and the configuration for bpt-train. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "tools/plan/plan_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_row(const bpt_recipe *recipe, const bpt_plan_row *row, bpt_json_writer *w) {
    const bpt_forecast *f = &row->forecast;
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "update", bpt_update_choice_name(row->way.update));
    bpt_json_put_text(w, "partition", bpt_partition_choice_name(row->way.partition));
    bpt_json_put_u64(w, "batch_size", row->batch);
    bpt_json_put_real(w, "images_per_s", f->images_per_s);
    bpt_json_put_real(w, "efficiency", f->part);
    bpt_json_put_real(w, "epoch_s", (double)recipe->epoch_samples / f->images_per_s);
    bpt_json_put_real(w, "steps_per_exchange", f->every);
    bpt_json_put_real(w, "sent_bytes_per_s", f->sent_bytes_per_s);
    bpt_json_put_bool(w, "links_are_full", f->links_are_full);
    bpt_json_put_text(w, "limit", row->full ? "memory" : bpt_plan_limit_name(f->limit));
    if (row->most_memory > 0) bpt_json_put_u64(w, "memory_bytes", (uint64_t)row->most_memory);
    bpt_json_close_object(w);
}

static void put_size(const bpt_recipe *recipe, const bpt_plan_size *size, bpt_json_writer *w) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "ranks", size->n_ranks);
    bpt_json_put_real(w, "alone", size->alone);
    bpt_json_open_array(w, "ways");
    for (size_t i = 0; i < size->n_rows; i++) put_row(recipe, &size->rows[i], w);
    bpt_json_close_array(w);
    bpt_json_close_object(w);
}

static void put_rank(const bpt_plan *plan, uint32_t rank, bpt_json_writer *w) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "rank", rank);
    bpt_json_put_text(w, "node", plan->nodes[rank]->name);
    bpt_json_put_real(w, "images_per_s", plan->alone[rank]);
    if (plan->chosen && plan->n_ranks > 1) bpt_json_put_real(w, "brings", plan->gain[rank]);
    bpt_json_close_object(w);
}

static void put_run(const bpt_plan *plan, const bpt_run_pace *run, bpt_json_writer *w) {
    bpt_json_open_object(w, "compared");
    bpt_json_put_text(w, "update", bpt_update_choice_name(run->way.update));
    bpt_json_put_text(w, "partition", bpt_partition_choice_name(run->way.partition));
    bpt_json_put_u64(w, "ranks", run->n_ranks);
    bpt_json_put_real(w, "images_per_s", run->images_per_s);
    bpt_json_put_real(w, "foretold", bpt_run_pace_find(plan, run)->forecast.images_per_s);
    bpt_json_close_object(w);
}

bpt_status bpt_plan_print_json(const bpt_recipe *recipe, const bpt_plan *plan,
                               const bpt_run_pace *run, FILE *out) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    bpt_json_open_object(&w, NULL);
    bpt_json_put_text(&w, "model", recipe->model->name);
    bpt_json_put_u64(&w, "weight_bytes", recipe->model->segments.n_elements * sizeof(float));
    bpt_json_put_u64(&w, "epoch_images", recipe->epoch_samples);
    bpt_json_open_array(&w, "ranks");
    for (uint32_t r = 0; r < plan->n_ranks; r++) put_rank(plan, r, &w);
    bpt_json_close_array(&w);
    bpt_json_open_array(&w, "sizes");
    for (size_t i = 0; i < plan->n_sizes; i++) put_size(recipe, &plan->sizes[i], &w);
    bpt_json_close_array(&w);
    if (plan->chosen) {
        bpt_json_put_text(&w, "update", bpt_update_choice_name(plan->chosen->way.update));
        bpt_json_put_text(&w, "partition", bpt_partition_choice_name(plan->chosen->way.partition));
    }
    if (plan->fewer) bpt_json_put_u64(&w, "fewer_ranks", plan->fewer->n_ranks);
    if (run) put_run(plan, run, &w);
    bpt_json_close_object(&w);
    const bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) fprintf(out, "%s\n", text);
    bpt_json_free(&w);
    return status;
}

/* ---- the configuration ---- */

/* Prints an option as it was given, where it has a value. */
static void put_option(const bpt_plan_options *o, const char *name, FILE *out) {
    const bpt_option *row = bpt_plan_command.options;
    while (strcmp(row->name, name) != 0) row++;
    const bpt_command one = {.options = row, .n_options = 1};
    bpt_options_print(&one, o, out);
}

static void put_prediction(const bpt_plan *plan, FILE *out) {
    const bpt_plan_row *row = plan->chosen;
    char now[32];
    bpt_clock_utc(now, sizeof now);
    fprintf(out, BPT_PLAN_MARK "%" PRIu32 " rank%s, %s.\n", plan->n_ranks,
            plan->n_ranks == 1 ? "" : "s", now);
    fprintf(out, "# Predicted: %.6g images/s, %.2f of what the ranks do one by one; limit: %s.\n",
            row->forecast.images_per_s, row->forecast.part,
            bpt_plan_limit_name(row->forecast.limit));
}

/* The options of bpt-train that a plan decides on, or depends on. */
static void put_choices(const bpt_plan_options *o, bpt_way way, FILE *out) {
    put_option(o, "model", out);
    fprintf(out, "update: %s\n", bpt_update_choice_name(way.update));
    if (way.update != BPT_UPDATE_LOCAL)
        fprintf(out, "partition: %s\n", bpt_partition_choice_name(way.partition));
    if (o->batch_is_given) put_option(o, "batch-size", out);
    put_option(o, "epochs", out);
    put_option(o, "precision", out);
    put_option(o, "optimizer", out);
    if (o->data) { /* without it bpt-train would have no use for them */
        put_option(o, "train-split", out);
        put_option(o, "input-size", out);
    }
}

bpt_status bpt_plan_write(const char *path, const bpt_recipe *recipe, const bpt_plan *plan) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return bpt_fail(BPT_ENOMEM, "no memory for the plan");
    put_prediction(plan, stream);
    put_choices(recipe->options, plan->chosen->way, stream);
    const bpt_status status = fclose(stream) == 0 ? bpt_file_write(path, text, size)
                                                  : bpt_fail(BPT_ENOMEM, "no memory for the plan");
    free(text);
    return status;
}
