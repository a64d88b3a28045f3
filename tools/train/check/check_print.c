#include "tools/train/check/check_print.h"

#include "tools/train/check/check_findings.h"

#include <string.h>

enum { N_COLUMNS = 10, SCRATCH = 7, STAGE, RUN, CELL_SIZE = 96 };

typedef char row[N_COLUMNS][CELL_SIZE];

static const char *const headings[N_COLUMNS] = {"rank",    "host",      "cores",   "mpi",
                                                "network", "clock",     "dataset", "scratch",
                                                "stage",   "run folder"};

static bool is_one_host(const bpt_check_facts *ranks, uint32_t n) {
    for (uint32_t r = 1; r < n; r++)
        if (ranks[r].machine != ranks[0].machine) return false;
    return true;
}

static void show_cores(const bpt_check_facts *f, char *cell) {
    const uint32_t allowed = (uint32_t)CPU_COUNT(&f->allowed);
    snprintf(cell, CELL_SIZE, "%u of %u%s", allowed, f->processors,
             allowed > 0 && allowed < f->processors ? " bound" : "");
}

/* Without a connection by TCP ranks of a host share memory; else it goes by something else. */
static const char *show_network(const bpt_check_facts *f, uint32_t n, bool one_host) {
    if (f->network[0]) return f->network;
    return n == 1 ? "-" : one_host ? "shared memory" : "not TCP";
}

static void show_clock(const bpt_check_facts *f, uint32_t rank, char *cell) {
    if (rank == 0)
        snprintf(cell, CELL_SIZE, "-");
    else
        snprintf(cell, CELL_SIZE, "%+.3f s", f->clock_ahead_s);
}

static const char *reach(const bpt_file_system *place) {
    return place->network ? "network" : "local";
}

static void show_data(const bpt_check_facts *f, char *cell) {
    if (!f->has_data)
        snprintf(cell, CELL_SIZE, "-");
    else if (!f->data)
        snprintf(cell, CELL_SIZE, "not readable");
    else
        snprintf(cell, CELL_SIZE, "%016llx %s %s", (unsigned long long)f->data, f->data_place.kind,
                 reach(&f->data_place));
}

static bool any_scratch(const bpt_check_facts *ranks, uint32_t n) {
    for (uint32_t r = 0; r < n; r++)
        if (ranks[r].has_scratch) return true;
    return false;
}

static void show_place(const bpt_file_system *at, char *cell) {
    const int n = snprintf(cell, CELL_SIZE, "%s %s", at->kind, reach(at));
    if (at->free_bytes != UINT64_MAX)
        snprintf(cell + n, CELL_SIZE - (size_t)n, ", %.1f GB free", 1e-9 * (double)at->free_bytes);
}

static void show_scratch(const bpt_check_facts *f, char *cell) {
    if (!f->has_scratch || !f->scratch_place.kind[0])
        snprintf(cell, CELL_SIZE, "-");
    else
        show_place(&f->scratch_place, cell);
}

static bool any_stage(const bpt_check_facts *ranks, uint32_t n) {
    for (uint32_t r = 0; r < n; r++)
        if (ranks[r].has_stage) return true;
    return false;
}

static void show_stage(const bpt_check_facts *f, char *cell) {
    if (!f->has_stage || !f->stage_place.kind[0])
        snprintf(cell, CELL_SIZE, "-");
    else
        show_place(&f->stage_place, cell);
}

static void show_run(const bpt_check_facts *f, char *cell) {
    if (!f->has_run || !f->run_place.kind[0])
        snprintf(cell, CELL_SIZE, "-");
    else
        show_place(&f->run_place, cell);
}

static void fill(row cells, const bpt_check_facts *ranks, uint32_t n, uint32_t r) {
    const bpt_check_facts *f = &ranks[r];
    snprintf(cells[0], CELL_SIZE, "%u", r);
    snprintf(cells[1], CELL_SIZE, "%s", f->host);
    show_cores(f, cells[2]);
    snprintf(cells[3], CELL_SIZE, "%s", f->thread_level);
    snprintf(cells[4], CELL_SIZE, "%s", show_network(f, n, is_one_host(ranks, n)));
    show_clock(f, r, cells[5]);
    show_data(f, cells[6]);
    show_scratch(f, cells[SCRATCH]);
    show_stage(f, cells[STAGE]);
    show_run(f, cells[RUN]);
}

/* @param width 0: the column is left out */
static void print_row(row cells, const size_t *width, FILE *out) {
    for (int i = 0; i < N_COLUMNS; i++)
        if (width[i] > 0)
            fprintf(out, "%-*s%s", i + 1 < N_COLUMNS ? (int)width[i] : 0, cells[i],
                    i + 1 < N_COLUMNS ? "  " : "\n");
}

static void print_table(const bpt_check_facts *ranks, uint32_t n, FILE *out) {
    size_t width[N_COLUMNS];
    row cells;
    for (int i = 0; i < N_COLUMNS; i++) width[i] = strlen(headings[i]);
    for (uint32_t r = 0; r < n; r++) {
        fill(cells, ranks, n, r);
        for (int i = 0; i < N_COLUMNS; i++)
            if (strlen(cells[i]) > width[i]) width[i] = strlen(cells[i]);
    }
    if (!any_scratch(ranks, n)) width[SCRATCH] = 0;
    if (!any_stage(ranks, n)) width[STAGE] = 0;
    for (int i = 0; i < N_COLUMNS; i++) snprintf(cells[i], CELL_SIZE, "%s", headings[i]);
    print_row(cells, width, out);
    for (uint32_t r = 0; r < n; r++) {
        fill(cells, ranks, n, r);
        print_row(cells, width, out);
    }
}

typedef struct {
    const bpt_check_facts *ranks;
    FILE *out;
    uint32_t n_errors, n_warnings;
} printer;

static void print_finding(void *arg, const bpt_check_finding *f) {
    printer *p = arg;
    fprintf(p->out, "%s: rank %u on %s: %s.%s%s\n", f->error ? "error" : "warning", f->rank,
            p->ranks[f->rank].host, f->what, f->hint[0] ? " hint: " : "", f->hint);
    if (f->error)
        p->n_errors++;
    else
        p->n_warnings++;
}

uint32_t bpt_check_print(const bpt_check_facts *ranks, uint32_t n, FILE *out) {
    printer p = {.ranks = ranks, .out = out};
    print_table(ranks, n, out);
    bpt_check_find(ranks, n, print_finding, &p);
    fprintf(out, "%u rank%s with %s: %u error%s, %u warning%s\n", n, n == 1 ? "" : "s",
            ranks[0].library, p.n_errors, p.n_errors == 1 ? "" : "s", p.n_warnings,
            p.n_warnings == 1 ? "" : "s");
    return p.n_errors;
}
