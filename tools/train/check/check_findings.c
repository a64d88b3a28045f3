#include "tools/train/check/check_findings.h"

#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Below these a run folder's file system is full, or will soon be. */
#define FULL_BYTES ((uint64_t)16 << 20)
#define LOW_BYTES  ((uint64_t)1 << 30)

/* Clocks that are further apart than this mislead in logs and in times of files. */
static const double far_s = 1.0;

typedef struct {
    const bpt_check_facts *ranks;
    uint32_t n;
    bpt_check_found found;
    void *arg;
} search;

static void report(const search *s, bool error, uint32_t rank, const char *hint, const char *format,
                   ...) __attribute__((format(printf, 5, 6)));

static void report(const search *s, bool error, uint32_t rank, const char *hint, const char *format,
                   ...) {
    bpt_check_finding finding = {.error = error, .rank = rank};
    va_list args;
    va_start(args, format);
    vsnprintf(finding.what, sizeof finding.what, format, args);
    va_end(args);
    snprintf(finding.hint, sizeof finding.hint, "%s", hint);
    s->found(s->arg, &finding);
}

/* ---- cores ---- */

uint32_t bpt_check_unused(const bpt_check_facts *ranks, uint32_t n, uint32_t rank) {
    cpu_set_t used;
    CPU_ZERO(&used);
    for (uint32_t r = 0; r < n; r++)
        if (ranks[r].machine == ranks[rank].machine) CPU_OR(&used, &used, &ranks[r].allowed);
    const uint32_t n_used = (uint32_t)CPU_COUNT(&used);
    return n_used < ranks[rank].processors ? ranks[rank].processors - n_used : 0;
}

static void find_bound(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    const uint32_t unused = bpt_check_unused(s->ranks, s->n, r);
    const uint32_t allowed = (uint32_t)CPU_COUNT(&f->allowed);
    const bool lacks = f->threads > f->cores && f->threads > allowed;
    if (allowed == 0) return; /* not known */
    if (f->cores == 1 && unused > 0 && f->threads != 1)
        report(s, false, r,
               f->launched
                   ? "give mpirun the option --bind-to none"
                   : "what started it allows no more (taskset, a container, or srun without "
                     "--cpu-bind=none)",
               "is bound to one core, and no rank may use %u of the host's %u processors", unused,
               f->processors);
    else if (lacks)
        report(s, false, r,
               f->launched ? "give mpirun the option --bind-to none, or lower --threads"
                           : "lower --threads: what started it allows no more cores",
               "may use %u core%s for %u threads", f->cores, f->cores == 1 ? "" : "s", f->threads);
    else if (f->threads > f->quota)
        report(s, false, r, "lower --threads, or ask for more (of the container or batch system)",
               "has the time of %u core%s for %u threads: a control group leaves no more", f->quota,
               f->quota == 1 ? "" : "s", f->threads);
}

/* Ranks of a host take turns where they are more than the processors that they may use, or whose
 * time control groups leave them: the first of them speaks. One that is bound has been told.
 * Servers need next to none of it. */
static void find_crowd(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    const uint32_t unused = bpt_check_unused(s->ranks, s->n, r), used = f->processors - unused;
    const uint32_t limit = f->quota < used ? f->quota : used;
    uint32_t n = 0;
    for (uint32_t o = 0; o < s->n; o++) {
        if (s->ranks[o].machine != f->machine || s->ranks[o].serves) continue;
        if (o < r) return;
        n++;
    }
    if (f->serves || n <= limit || CPU_COUNT(&f->allowed) == 0 || (f->cores == 1 && unused > 0))
        return;
    report(s, false, r, "start fewer ranks there",
           "is one of %u ranks on its host, which share the time of %u processor%s", n, limit,
           limit == 1 ? "" : "s");
}

/* ---- programs ---- */

static void find_libraries(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r], *first = &s->ranks[0];
    if (strcmp(f->library, first->library) != 0)
        report(s, false, r, "install the same version on all hosts", "has %s, rank 0 has %s",
               f->library, first->library);
}

/* ---- clocks and networks ---- */

static void find_clock(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    if (fabs(f->clock_ahead_s) - f->clock_error_s <= far_s) return;
    report(s, false, r, "logs and times of files will mislead: let NTP set the clock",
           "its clock is %.1f s %s that of rank 0", fabs(f->clock_ahead_s),
           f->clock_ahead_s > 0 ? "ahead of" : "behind");
}

/* Bridges of containers and virtual machines: other hosts have ones of the same address. */
static void find_bridge(const search *s, uint32_t r) {
    static const char *const bridges[] = {"docker", "virbr",  "br-", "lxcbr",
                                          "lxdbr",  "podman", "cni"};
    char list[sizeof s->ranks[r].network + 1];
    snprintf(list, sizeof list, "%s", s->ranks[r].network);
    char *rest = list;
    for (const char *name; (name = strtok_r(rest, ", ", &rest));)
        for (size_t i = 0; i < sizeof bridges / sizeof *bridges; i++)
            if (strncmp(name, bridges[i], strlen(bridges[i])) == 0)
                report(s, false, r,
                       "name the right network with --mca btl_tcp_if_include, as 192.168.1.0/24",
                       "is connected by %s, a bridge of containers or virtual machines", name);
}

/* ---- the dataset ---- */

/* @return the rank that stands for what most have; of several the lowest */
static uint32_t find_common_data(const search *s) {
    uint32_t best = 0, n_best = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t n_same = 0;
        for (uint32_t o = 0; s->ranks[r].data && o < s->n; o++)
            n_same += s->ranks[o].data == s->ranks[r].data;
        if (n_same <= n_best) continue;
        best = r;
        n_best = n_same;
    }
    return best;
}

/* Where the others are given samples, one rank alone has the dataset. */
static const char *where_data_should_be(const search *s, bool nobody_has_it) {
    for (uint32_t r = 0; r < s->n; r++)
        if (s->ranks[r].has_scratch) return "rank 0 has to have the dataset, at the path of --data";
    if (nobody_has_it) return "bpt-ingest makes one, and it is at the same path on every host";
    return "the dataset has to be at the same path on every host";
}

static void find_data(const search *s, uint32_t r, uint32_t common) {
    const bpt_check_facts *f = &s->ranks[r];
    if (!f->has_data) return;
    if (!f->data)
        report(s, true, r,
               f->data_refusal.hint[0] ? f->data_refusal.hint
                                       : where_data_should_be(s, !s->ranks[common].data),
               "%s", f->data_refusal.what);
    else if (f->data != s->ranks[common].data)
        report(s, true, r, "copy the dataset's folder anew: all ranks learn from the same images",
               "has another dataset than rank %u on %s: %016llx, not %016llx", common,
               s->ranks[common].host, (unsigned long long)f->data,
               (unsigned long long)s->ranks[common].data);
}

/* ---- model, tuning and checkpoint ---- */

static void find_refusal(const search *s, uint32_t r, const bpt_check_refusal *refusal) {
    if (refusal->what[0]) report(s, true, r, refusal->hint, "%s", refusal->what);
}

/* @param first the first rank that could load it */
static void find_model(const search *s, uint32_t r, uint32_t first) {
    const bpt_check_facts *f = &s->ranks[r];
    find_refusal(s, r, &f->model_refusal);
    if (f->model && f->model != s->ranks[first].model)
        report(s, true, r, "give every host the same file", "has another model than rank %u on %s",
               first, s->ranks[first].host);
    find_refusal(s, r, &f->device_refusal);
    find_refusal(s, r, &f->tuned_refusal);
    find_refusal(s, r, &f->resume_refusal);
    find_refusal(s, r, &f->weights_refusal);
    find_refusal(s, r, &f->job_refusal);
    find_refusal(s, r, &f->trace_refusal);
}

static uint32_t find_first_model(const search *s) {
    uint32_t first = 0;
    while (!s->ranks[first].model && first + 1 < s->n) first++;
    return first;
}

/* ---- scratch ---- */

/* What ranks of one host need together; the first of them speaks. */
typedef struct {
    uint32_t n;
    uint64_t even, most, room;
} host_scratch;

static bool share_scratch(const bpt_check_facts *a, const bpt_check_facts *b) {
    return a->has_scratch && b->has_scratch && a->machine == b->machine;
}

/* @return whether this rank is the first of its host that has one */
static bool sum_scratch(const search *s, uint32_t r, host_scratch *sum) {
    const bpt_check_facts *f = &s->ranks[r];
    *sum = (host_scratch){.room = f->scratch_place.free_bytes};
    for (uint32_t o = 0; o < s->n; o++) {
        const bpt_check_facts *other = &s->ranks[o];
        if (!share_scratch(f, other)) continue;
        if (o < r) return false;
        sum->n++;
        sum->even += other->scratch_even;
        sum->most += other->scratch_most;
        sum->room += other->scratch_there;
    }
    return true;
}

static void find_scratch_room(const search *s, uint32_t r) {
    host_scratch sum;
    char whose[40] = "";
    const double mb = 1e-6;
    if (!s->ranks[r].scratch_place.kind[0] || !sum_scratch(s, r, &sum)) return;
    if (sum.n > 1) snprintf(whose, sizeof whose, " of each of its %u ranks", sum.n);
    if (sum.room < sum.even)
        report(s, true, r, "make room there, or name a --scratch on another disk",
               "its scratch has room for %.1f MB of samples, even shares%s take %.1f MB",
               mb * (double)sum.room, whose, mb * (double)sum.even);
    else if (sum.room < sum.most)
        report(s, false, r, "a rank gets as many samples as it is fast: make room there",
               "its scratch has room for %.1f MB of samples, all that may be given to it%s takes "
               "%.1f MB",
               mb * (double)sum.room, whose, mb * (double)sum.most);
}

static void find_scratch(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    if (!f->has_scratch) return;
    if (f->scratch_error[0]) {
        report(s, true, r, "name a --scratch where it may write, or remove what is there", "%s",
               f->scratch_error);
        return;
    }
    if (f->scratch_place.network)
        report(s, false, r, "name a --scratch on a disk of its own",
               "its scratch is on a network file system (%s)", f->scratch_place.kind);
    find_scratch_room(s, r);
}

/* ---- copies of the dataset ---- */

/* Ranks of one host share a copy: the first of them speaks. */
static bool is_first_with_stage(const search *s, uint32_t r) {
    for (uint32_t o = 0; o < r; o++)
        if (s->ranks[o].has_stage && s->ranks[o].machine == s->ranks[r].machine) return false;
    return true;
}

static void find_stage(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    const double mb = 1e-6;
    if (!f->has_stage) return;
    if (f->stage_error[0]) {
        report(s, true, r, "name a --stage where it may write", "%s", f->stage_error);
        return;
    }
    if (!f->stage_place.kind[0] || !is_first_with_stage(s, r)) return;
    if (f->stage_place.network)
        report(s, false, r, "name a --stage on a disk of its own",
               "its copy of the dataset is on a network file system (%s)", f->stage_place.kind);
    if (f->stage_place.free_bytes < f->stage_need)
        report(s, true, r, "make room there, or name a --stage on another disk",
               "the disk of its --stage has room for %.1f MB, %.1f MB are to be copied",
               mb * (double)f->stage_place.free_bytes, mb * (double)f->stage_need);
}

/* ---- the run's folder ---- */

static void find_run(const search *s, uint32_t r) {
    const bpt_check_facts *f = &s->ranks[r];
    if (!f->has_run || s->ranks[0].run_finished) return;
    find_refusal(s, r, &f->run_refusal);
    if (f->run_refusal.what[0]) return;
    if (!f->run_seen && !s->ranks[0].run_refusal.what[0])
        report(s, true, r, "name an --output on a file system that all machines share",
               "does not see the run folder's place of rank 0");
    if (r != 0 || !f->run_place.kind[0]) return; /* the others share it */
    const uint64_t room = bpt_size_add(f->run_place.free_bytes, f->run_frees);
    const char *frees = f->run_frees > 0 ? " with what is removed" : "";
    const bpt_run_need *need = &f->run_need;
    const double mb = 1e-6, room_mb = mb * (double)room;
    if (need->most == 0 && room < FULL_BYTES)
        report(s, true, r, "make room there, or name an --output on another disk",
               "the file system of the run folder is full: %.1f MB are free%s", room_mb, frees);
    else if (room < need->least)
        report(
            s, true, r, "make room there, or name an --output on another disk",
            "the file system of the run folder has room for %.1f MB%s, the weights%s take %.1f MB",
            room_mb, frees, need->checkpoints > 0 ? " and a checkpoint" : "",
            mb * (double)need->least);
    else if (room < need->most)
        report(s, false, r,
               need->fewer ? "make room meanwhile, or lower --checkpoint-keep"
                           : "make room meanwhile",
               "the file system of the run folder has room for %.1f MB%s, checkpoints and weights "
               "take %.1f MB",
               room_mb, frees, mb * (double)need->most);
    else if (room < LOW_BYTES)
        report(s, false, r, "checkpoints take at least twice the model's size each: make room",
               "the file system of the run folder is nearly full: %.0f MB are free%s", room_mb,
               frees);
}

void bpt_check_find(const bpt_check_facts *ranks, uint32_t n, bpt_check_found found, void *arg) {
    const search s = {ranks, n, found, arg};
    for (uint32_t r = 0; r < n; r++) find_bound(&s, r);
    for (uint32_t r = 0; r < n; r++) find_crowd(&s, r);
    for (uint32_t r = 1; r < n; r++) find_libraries(&s, r);
    for (uint32_t r = 1; r < n; r++) find_clock(&s, r);
    for (uint32_t r = 0; r < n; r++) find_bridge(&s, r);
    const uint32_t common = find_common_data(&s);
    for (uint32_t r = 0; r < n; r++) find_data(&s, r, common);
    const uint32_t first = find_first_model(&s);
    for (uint32_t r = 0; r < n; r++) find_model(&s, r, first);
    for (uint32_t r = 0; r < n; r++) find_scratch(&s, r);
    for (uint32_t r = 0; r < n; r++) find_stage(&s, r);
    for (uint32_t r = 0; r < n; r++) find_run(&s, r);
}
