#include "base/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a hierarchy of groups is mounted. */
typedef struct {
    char point[PATH_MAX]; /* of the mount, with the root before it; "": none */
    char top[PATH_MAX];   /* the group that is seen there */
} mount;

typedef struct {
    const char *root;
    mount unified, memory, cpu; /* version 2; controllers of version 1 */
    bpt_cgroup_limits limits;
} reader;

/* ---- files ---- */

static FILE *open_in(const char *folder, const char *name) {
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

static bool read_word(const char *folder, const char *name, char word[64]) {
    FILE *f = open_in(folder, name);
    if (!f) return false;
    const bool read = fscanf(f, "%63s", word) == 1;
    fclose(f);
    return read;
}

/* ---- limits of one group ---- */

static void bound_memory(reader *r, const char *folder, const char *name) {
    char word[64], *end;
    if (!read_word(folder, name, word)) return;
    const unsigned long long bytes = strtoull(word, &end, 10); /* "max" is no number */
    if (end == word || *end || bytes >= SIZE_MAX) return;
    if ((size_t)bytes < r->limits.memory_bytes) r->limits.memory_bytes = (size_t)bytes;
}

static void bound_processors(reader *r, double quota, double period) {
    if (quota <= 0.0 || period <= 0.0) return; /* -1: no limit */
    if (quota / period < r->limits.processors) r->limits.processors = quota / period;
}

static void read_unified(reader *r, const char *folder) {
    double quota, period;
    FILE *f = open_in(folder, "cpu.max");
    if (f && fscanf(f, "%lf %lf", &quota, &period) == 2) bound_processors(r, quota, period);
    if (f) fclose(f);
    bound_memory(r, folder, "memory.max");
}

static void read_memory(reader *r, const char *folder) {
    bound_memory(r, folder, "memory.limit_in_bytes");
}

static void read_cpu(reader *r, const char *folder) {
    char quota[64], period[64];
    if (!read_word(folder, "cpu.cfs_quota_us", quota)) return;
    if (!read_word(folder, "cpu.cfs_period_us", period)) return;
    bound_processors(r, strtod(quota, NULL), strtod(period, NULL));
}

/* ---- groups ---- */

/* The group's folder, then those above it, up to the mount. A container may see its own group at
 * the mount, while the name of the group still is the host's: then what is there counts. */
static void read_group(reader *r, const mount *m, const char *group,
                       void (*read)(reader *r, const char *folder)) {
    char folder[PATH_MAX];
    const size_t top = strcmp(m->top, "/") == 0 ? 0 : strlen(m->top);
    if (!m->point[0]) return;
    const bool inside =
        strncmp(group, m->top, top) == 0 && (group[top] == '/' || group[top] == '\0');
    const char *below = inside ? group + top : "";
    const int n = snprintf(folder, sizeof folder, "%s%s", m->point, below);
    if (n < 0 || (size_t)n >= sizeof folder) return;
    const size_t point = strlen(m->point);
    for (;;) {
        read(r, folder);
        if (strlen(folder) <= point) return;
        *strrchr(folder, '/') = '\0';
    }
}

static bool has_controller(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    return false;
}

/* A line is "id:controllers:group"; of version 2 there are no controllers. */
static void take_group(reader *r, char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (!*controllers) read_group(r, &r->unified, group, read_unified);
    if (has_controller(controllers, "memory")) read_group(r, &r->memory, group, read_memory);
    if (has_controller(controllers, "cpu")) read_group(r, &r->cpu, group, read_cpu);
}

/* ---- mounts ---- */

static void set_mount(const reader *r, mount *m, const char *top, const char *point) {
    const char *below = strcmp(point, "/") == 0 ? "" : point;
    const int n = snprintf(m->point, sizeof m->point, "%s%s", r->root, below);
    if (n < 0 || (size_t)n >= sizeof m->point) m->point[0] = '\0';
    snprintf(m->top, sizeof m->top, "%s", top);
}

/* A line of mountinfo is "id parent device top point options... - type source options". */
static void take_mount(reader *r, char *line) {
    char top[PATH_MAX], point[PATH_MAX], type[64], options[1024];
    const char *behind = strstr(line, " - ");
    _Static_assert(PATH_MAX == 4096, "as the formats say");
    if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) return;
    if (sscanf(behind, " - %63s %*s %1023s", type, options) != 2) return;
    if (strcmp(type, "cgroup2") == 0) set_mount(r, &r->unified, top, point);
    if (strcmp(type, "cgroup") != 0) return;
    if (has_controller(options, "memory")) set_mount(r, &r->memory, top, point);
    if (has_controller(options, "cpu")) set_mount(r, &r->cpu, top, point);
}

static void read_lines(reader *r, const char *name, void (*take)(reader *r, char *line)) {
    char *line = NULL;
    size_t capacity = 0;
    FILE *f = open_in(r->root, name);
    if (!f) return;
    while (getline(&line, &capacity, f) > 0) take(r, line);
    free(line);
    fclose(f);
}

bpt_cgroup_limits bpt_cgroup_read_below(const char *root) {
    reader r = {.root = root, .limits = {SIZE_MAX, HUGE_VAL}};
    read_lines(&r, "proc/self/mountinfo", take_mount);
    read_lines(&r, "proc/self/cgroup", take_group);
    return r.limits;
}

bpt_cgroup_limits bpt_cgroup_read(void) {
    return bpt_cgroup_read_below("");
}
