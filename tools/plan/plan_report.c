/* The report for people. */
#include "tools/plan/plan_report.h"

#include <inttypes.h>
#include <math.h>

enum { NAME_WIDTH = 20 };

/* What is less does not pay for the machine. */
static const double worth_having = 0.01;

/* Times as fast as what is taken: what is less is nothing to regret. */
static const double worth_saying = 1.01;

/* ---- nodes ---- */

static void print_amount(FILE *out, double value, double unit) {
    if (value > 0)
        fprintf(out, "  %12.4g", value / unit);
    else
        fprintf(out, "  %12s", "-");
}

static void print_node(const bpt_plan *plan, uint32_t first, uint32_t count, FILE *out) {
    const bpt_node *node = plan->nodes[first];
    fprintf(out, "%-*s  %6" PRIu32 "  %12.1f", NAME_WIDTH, node->name, count, plan->alone[first]);
    print_amount(out, node->link_bytes_per_s * 8, 1e6);
    print_amount(out, node->memory_bytes, 1e6);
    if (plan->n_ranks > 1 && plan->chosen) fprintf(out, "  %7.1f %%", 100 * plan->gain[first]);
    fputc('\n', out);
}

static uint32_t count_like(const bpt_plan *plan, uint32_t first) {
    uint32_t n = 1;
    while (first + n < plan->n_ranks && plan->nodes[first + n] == plan->nodes[first]) n++;
    return n;
}

static void print_nodes(const bpt_plan *plan, FILE *out) {
    fprintf(out, "%-*s  %6s  %12s  %12s  %12s%s\n", NAME_WIDTH, "node", "ranks", "images/s each",
            "link, Mbit/s", "memory, MB", plan->n_ranks > 1 && plan->chosen ? "  each brings" : "");
    for (uint32_t r = 0; r < plan->n_ranks; r += count_like(plan, r))
        print_node(plan, r, count_like(plan, r), out);
    fprintf(out, "%-*s  %6" PRIu32 "  %12.1f\n\n", NAME_WIDTH, "all, one by one", plan->n_ranks,
            bpt_plan_whole(plan)->alone);
}

/* ---- ways ---- */

static void print_row(const bpt_recipe *recipe, const bpt_plan_row *row, FILE *out) {
    const bpt_forecast *f = &row->forecast;
    fprintf(out, "%-*s  %6" PRIu32 "  %12.1f  %10.2f  %9.4g  ", NAME_WIDTH, bpt_way_name(row->way),
            row->batch, f->images_per_s, f->part, (double)recipe->epoch_samples / f->images_per_s);
    if (f->every > 0)
        fprintf(out, "%11.0f", f->every);
    else
        fprintf(out, "%11s", "-");
    fprintf(out, "  %10.1f  %s\n", row->most_memory * 1e-6,
            row->full ? "memory" : bpt_plan_limit_name(f->limit));
}

static void print_ways(const bpt_recipe *recipe, const bpt_plan *plan, FILE *out) {
    const bpt_plan_size *whole = bpt_plan_whole(plan);
    fprintf(out, "%-*s  %6s  %12s  %10s  %9s  %11s  %10s  %s\n", NAME_WIDTH, "way", "batch",
            "images/s", "of the sum", "epoch, s", "every steps", "memory, MB", "limit");
    for (size_t i = 0; i < whole->n_rows; i++) print_row(recipe, &whole->rows[i], out);
    fputc('\n', out);
}

/* ---- sizes ---- */

static void print_size(const bpt_plan_size *size, FILE *out) {
    fprintf(out, "%6" PRIu32 "  %12.1f", size->n_ranks, size->alone);
    for (int w = 1; w < BPT_PLAN_WAYS; w++) {
        const bpt_plan_row *row = bpt_plan_find(size, bpt_plan_ways()[w]);
        if (row)
            fprintf(out, "  %15.1f", row->forecast.images_per_s);
        else
            fprintf(out, "  %15s", "-");
    }
    fputc('\n', out);
}

static void print_sizes(const bpt_plan *plan, FILE *out) {
    if (plan->n_ranks < 2) return;
    fprintf(out, "%6s  %12s", "first", "one by one");
    for (int w = 1; w < BPT_PLAN_WAYS; w++)
        fprintf(out, "  %15s", bpt_way_name(bpt_plan_ways()[w]));
    fprintf(out, "\n");
    for (size_t i = 0; i < plan->n_sizes; i++) print_size(&plan->sizes[i], out);
    fputc('\n', out);
}

/* ---- what to do ---- */

static void advise_memory(const bpt_plan *plan, FILE *out) {
    const bpt_plan_size *whole = bpt_plan_whole(plan);
    const bpt_plan_row *least = &whole->rows[0];
    for (size_t i = 1; i < whole->n_rows; i++)
        if (whole->rows[i].most_memory < least->most_memory) least = &whole->rows[i];
    fprintf(out,
            "no way fits: a rank takes %.1f MB at least, %s has %.1f; a smaller --batch-size "
            "takes less\n",
            least->most_memory * 1e-6, least->full->name, least->full->memory_bytes * 1e-6);
}

static void advise_ranks(const bpt_plan *plan, FILE *out) {
    for (uint32_t r = 0; r < plan->n_ranks && plan->n_ranks > 1; r += count_like(plan, r)) {
        if (plan->gain[r] >= worth_having) continue;
        fprintf(out, "leave out %s: %s\n", plan->nodes[r]->name,
                plan->gain[r] < 0 ? "it costs more than it brings" : "it brings next to nothing");
    }
}

static void advise_links(const bpt_plan *plan, FILE *out) {
    const bpt_forecast *f = &plan->chosen->forecast;
    if (f->links_are_full)
        fprintf(out,
                "links are full: ranks exchange every %.0f steps, since more often they cannot; "
                "accuracy may suffer\n",
                f->every);
}

static void advise(const bpt_plan *plan, FILE *out) {
    if (!plan->chosen) {
        advise_memory(plan, out);
        return;
    }
    const bpt_way way = plan->chosen->way;
    fprintf(out, "take --update %s", bpt_update_choice_name(way.update));
    if (way.update != BPT_UPDATE_LOCAL)
        fprintf(out, " --partition %s", bpt_partition_choice_name(way.partition));
    fprintf(out, ": %.1f images/s", plan->chosen->forecast.images_per_s);
    if (plan->fastest->forecast.images_per_s > worth_saying * plan->chosen->forecast.images_per_s)
        fprintf(out, "; %s is faster, but this is one trajectory, as of one machine",
                bpt_way_name(plan->fastest->way));
    fputc('\n', out);
    advise_links(plan, out);
    advise_ranks(plan, out);
}

static void compare(const bpt_recipe *recipe, const bpt_plan *plan, const bpt_run_pace *run,
                    FILE *out) {
    const double foretold = bpt_run_pace_find(plan, run)->forecast.images_per_s;
    fprintf(out, "%s: %s on %" PRIu32 " rank%s did %.1f images/s; foretold are %.1f, %.0f %% %s\n",
            recipe->options->compare, bpt_way_name(run->way), run->n_ranks,
            run->n_ranks == 1 ? "" : "s", run->images_per_s, foretold,
            100 * fabs(foretold / run->images_per_s - 1),
            foretold >= run->images_per_s ? "more" : "less");
}

void bpt_plan_print(const bpt_recipe *recipe, const bpt_plan *plan, const bpt_run_pace *run,
                    FILE *out) {
    const size_t weights = recipe->model->segments.n_elements;
    fprintf(out, "%s: %zu weights, %.1f MB; %" PRIu64 " images an epoch\n\n", recipe->model->name,
            weights, (double)weights * sizeof(float) * 1e-6, recipe->epoch_samples);
    print_nodes(plan, out);
    print_ways(recipe, plan, out);
    print_sizes(plan, out);
    advise(plan, out);
    if (run) compare(recipe, plan, run, out);
}
