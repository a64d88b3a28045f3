/* The report for people. */
#include "tools/plan/plan_report.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>

enum { LEAST_NAME_WIDTH = 20 };

/* Of what a rank brings on average: what is less does not pay for the machine. */
static const double worth_having = 0.05;

/* Times as fast as what is taken: what is less is nothing to regret. */
static const double worth_saying = 1.01;

/* ---- cells ---- */

/* A decimal; of what is small four digits, since a slow machine is no machine of speed 0. */
static void print_number(FILE *out, int width, double value) {
    if (value > 0 && value < 10)
        fprintf(out, "%*.4g", width, value);
    else
        fprintf(out, "%*.1f", width, value);
}

/* Prints a number where there is one. */
static void print_known(FILE *out, int width, double value) {
    if (value > 0)
        print_number(out, width, value);
    else
        fprintf(out, "%*s", width, "-");
}

/* @return characters of a text, which may be of several bytes */
static int width_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += (*text & 0xC0) != 0x80;
    return n;
}

static void print_name(FILE *out, int width, const char *name) {
    fprintf(out, "%s%*s", name, width - width_of(name), "");
}

/* ---- nodes ---- */

static int width_of_names(const bpt_plan *plan) {
    int most = LEAST_NAME_WIDTH;
    for (uint32_t r = 0; r < plan->n_ranks; r++) {
        const int width = width_of(plan->nodes[r]->name);
        if (width > most) most = width;
    }
    return most;
}

static void print_node(const bpt_plan *plan, uint32_t first, uint32_t count, int width, FILE *out) {
    const bpt_node *node = plan->nodes[first];
    print_name(out, width, node->name);
    fprintf(out, "  %6" PRIu32 "  ", count);
    print_number(out, 13, plan->alone[first]);
    fputs("  ", out);
    print_known(out, 12, node->link_bytes_per_s * 8e-6);
    fputs("  ", out);
    print_known(out, 12, node->memory_bytes * 1e-6);
    if (plan->n_ranks > 1 && plan->chosen) fprintf(out, "  %9.2f %%", 100 * plan->gain[first]);
    fputc('\n', out);
}

static uint32_t count_like(const bpt_plan *plan, uint32_t first) {
    uint32_t n = 1;
    while (first + n < plan->n_ranks && plan->nodes[first + n] == plan->nodes[first]) n++;
    return n;
}

static void print_nodes(const bpt_plan *plan, FILE *out) {
    const int width = width_of_names(plan);
    print_name(out, width, "node");
    fprintf(out, "  %6s  %13s  %12s  %12s%s\n", "ranks", "images/s each", "link, Mbit/s",
            "memory, MB", plan->n_ranks > 1 && plan->chosen ? "  each brings" : "");
    for (uint32_t r = 0; r < plan->n_ranks; r += count_like(plan, r))
        print_node(plan, r, count_like(plan, r), width, out);
    print_name(out, width, "all, one by one");
    fprintf(out, "  %6" PRIu32 "  ", plan->n_ranks);
    print_number(out, 13, bpt_plan_whole(plan)->alone);
    fputs("\n\n", out);
}

/* ---- ways ---- */

static void print_row(const bpt_recipe *recipe, const bpt_plan_row *row, FILE *out) {
    const bpt_forecast *f = &row->forecast;
    print_name(out, LEAST_NAME_WIDTH, bpt_way_name(row->way));
    fprintf(out, "  %6" PRIu32 "  ", row->batch);
    print_number(out, 12, f->images_per_s);
    fprintf(out, "  %10.2f  ", f->part);
    print_number(out, 12, (double)recipe->epoch_samples / f->images_per_s);
    if (f->every > 0)
        fprintf(out, "  %11.0f  ", f->every);
    else
        fprintf(out, "  %11s  ", "-");
    print_number(out, 10, row->most_memory * 1e-6);
    fprintf(out, "  %s\n", row->full ? "memory" : bpt_plan_limit_name(f->limit));
}

static void print_ways(const bpt_recipe *recipe, const bpt_plan *plan, FILE *out) {
    const bpt_plan_size *whole = bpt_plan_whole(plan);
    print_name(out, LEAST_NAME_WIDTH, "way");
    fprintf(out, "  %6s  %12s  %10s  %12s  %11s  %10s  %s\n", "batch", "images/s", "of the sum",
            "epoch, s", "every steps", "memory, MB", "limit");
    for (size_t i = 0; i < whole->n_rows; i++) print_row(recipe, &whole->rows[i], out);
    fputc('\n', out);
}

/* ---- sizes ---- */

static void print_size(const bpt_plan_size *size, FILE *out) {
    fprintf(out, "%6" PRIu32 "  ", size->n_ranks);
    print_number(out, 12, size->alone);
    for (int w = 1; w < BPT_PLAN_WAYS; w++) {
        const bpt_plan_row *row = bpt_plan_find(size, bpt_plan_ways()[w]);
        fputs("  ", out);
        print_known(out, 15, row ? row->forecast.images_per_s : 0);
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
    enum { MOST_LINES = 8 };
    uint32_t n = 0;
    for (uint32_t r = 0; r < plan->n_ranks && plan->n_ranks > 1; r += count_like(plan, r)) {
        if (plan->gain[r] * plan->n_ranks >= worth_having || n++ >= MOST_LINES) continue;
        fprintf(out, "leave out %s: %s\n", plan->nodes[r]->name,
                plan->gain[r] < 0 ? "it costs more than it brings" : "it brings next to nothing");
    }
    if (n > MOST_LINES)
        fprintf(out,
                "and %" PRIu32 " more that bring as little; perhaps fewer --ranks do as much\n",
                n - MOST_LINES);
}

static void advise_links(const bpt_plan *plan, FILE *out) {
    const bpt_forecast *f = &plan->chosen->forecast;
    if (f->links_are_full)
        fprintf(out,
                "links are full: ranks exchange every %.0f steps, since more often they cannot; "
                "accuracy may suffer\n",
                f->every);
}

static void print_choice(const bpt_plan_row *row, FILE *out) {
    fprintf(out, "--update %s", bpt_update_choice_name(row->way.update));
    if (row->way.update != BPT_UPDATE_LOCAL)
        fprintf(out, " --partition %s", bpt_partition_choice_name(row->way.partition));
    fputs(": ", out);
    print_number(out, 0, row->forecast.images_per_s);
    fputs(" images/s", out);
}

static void advise_fewer(const bpt_plan *plan, FILE *out) {
    if (!plan->fewer) return;
    fprintf(out, "fewer %s: --ranks %" PRIu32 " and ", plan->chosen ? "do more" : "fit",
            plan->fewer->n_ranks);
    print_choice(plan->fewer_way, out);
    fputc('\n', out);
}

static void advise(const bpt_plan *plan, FILE *out) {
    if (!plan->chosen) {
        advise_memory(plan, out);
        advise_fewer(plan, out);
        return;
    }
    fputs("take ", out);
    print_choice(plan->chosen, out);
    if (plan->fastest->forecast.images_per_s > worth_saying * plan->chosen->forecast.images_per_s)
        fprintf(out, "; %s is faster, but this is one trajectory, as of one machine",
                bpt_way_name(plan->fastest->way));
    fputc('\n', out);
    advise_fewer(plan, out);
    advise_links(plan, out);
    advise_ranks(plan, out);
}

static void compare(const bpt_recipe *recipe, const bpt_plan *plan, const bpt_run_pace *run,
                    FILE *out) {
    const double foretold = bpt_run_pace_find(plan, run)->forecast.images_per_s;
    char path[BPT_ERROR_TEXT_SIZE];
    bpt_text_escape(recipe->options->compare, path, sizeof path);
    fprintf(out, "%s: %s on %" PRIu32 " rank%s did ", path, bpt_way_name(run->way), run->n_ranks,
            run->n_ranks == 1 ? "" : "s");
    print_number(out, 0, run->images_per_s);
    fputs(" images/s; foretold are ", out);
    print_number(out, 0, foretold);
    fprintf(out, ", %.0f %% %s\n", 100 * fabs(foretold / run->images_per_s - 1),
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
