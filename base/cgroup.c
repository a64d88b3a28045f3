#include "base/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 2; controllers of version 1. */
typedef enum { UNIFIED, MEMORY, CPU, N_HIERARCHIES } hierarchy;

/* Where a hierarchy of groups is seen. */
typedef struct {
    char group[PATH_MAX]; /* of this process; "": none */
    char point[PATH_MAX]; /* of the mount that shows it, with the root before it; "": none */
    char top[PATH_MAX];   /* the group that is the mount's own folder */
} place;

typedef struct {
    const char *root;
    place places[N_HIERARCHIES];
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

static void read_limits(reader *r, hierarchy h, const char *folder) {
    double quota, period;
    char of[64], to[64];
    if (h == UNIFIED) {
        FILE *f = open_in(folder, "cpu.max");
        if (f && fscanf(f, "%lf %lf", &quota, &period) == 2) bound_processors(r, quota, period);
        if (f) fclose(f);
        bound_memory(r, folder, "memory.max");
    } else if (h == MEMORY) {
        bound_memory(r, folder, "memory.limit_in_bytes");
    } else if (read_word(folder, "cpu.cfs_quota_us", of) &&
               read_word(folder, "cpu.cfs_period_us", to)) {
        bound_processors(r, strtod(of, NULL), strtod(to, NULL));
    }
}

/* ---- groups ---- */

static bool has_controller(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    return false;
}

static void set_group(reader *r, hierarchy h, const char *group) {
    char *own = r->places[h].group;
    const int n = snprintf(own, PATH_MAX, "%s", group);
    if (n < 0 || n >= PATH_MAX) *own = '\0';
}

/* A line is "id:controllers:group"; of version 2 there are no controllers. */
static void take_group(reader *r, char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (!*controllers) set_group(r, UNIFIED, group);
    if (has_controller(controllers, "memory")) set_group(r, MEMORY, group);
    if (has_controller(controllers, "cpu")) set_group(r, CPU, group);
}

/* @return what of the group's name is below the top; NULL: it is not there */
static const char *below(const char *group, const char *top) {
    const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool inside = strncmp(group, top, n) == 0 && (group[n] == '/' || group[n] == '\0');
    return inside ? group + n : NULL;
}

/* The group's folder, then those above it, up to the mount. A container may see its own group at
 * the mount, while the name of the group still is the host's: then what is there counts. */
static void read_place(reader *r, hierarchy h) {
    char folder[PATH_MAX];
    const place *p = &r->places[h];
    if (!p->group[0] || !p->point[0]) return;
    const char *inside = below(p->group, p->top);
    const int n = snprintf(folder, sizeof folder, "%s%s", p->point, inside ? inside : "");
    if (n < 0 || (size_t)n >= sizeof folder) return;
    const size_t point = strlen(p->point);
    for (;;) {
        read_limits(r, h, folder);
        if (strlen(folder) <= point) return;
        *strrchr(folder, '/') = '\0';
    }
}

/* ---- mounts ---- */

/* mountinfo writes spaces, tabs, line ends and backslashes as \ooo. */
static void undo_escapes(char *text) {
    char *to = text;
    for (const char *from = text; *from; to++) {
        unsigned byte;
        const bool escaped = *from == '\\' && sscanf(from + 1, "%3o", &byte) == 1 &&
                             strspn(from + 1, "01234567") >= 3;
        *to = escaped ? (char)byte : *from;
        from += escaped ? 4 : 1;
    }
    *to = '\0';
}

/* Of several mounts that one counts in which the least is above the own group, and of equal ones
 * the first; one that does not show the group only where none does. */
static bool is_nearer(const place *p, const char *top) {
    const bool shows = below(p->group, top) != NULL;
    if (!p->point[0]) return true;
    if (!below(p->group, p->top)) return shows;
    return shows && strlen(top) > strlen(p->top);
}

static void set_mount(reader *r, hierarchy h, const char *top, const char *point) {
    place *p = &r->places[h];
    char whole[PATH_MAX];
    const char *folder = strcmp(point, "/") == 0 ? "" : point;
    const int n = snprintf(whole, sizeof whole, "%s%s", r->root, folder);
    if (n < 0 || (size_t)n >= sizeof whole || !is_nearer(p, top)) return;
    strcpy(p->point, whole);
    snprintf(p->top, sizeof p->top, "%s", top);
}

/* A line of mountinfo is "id parent device top point options... - type source options". */
static void take_mount(reader *r, char *line) {
    char top[PATH_MAX], point[PATH_MAX], type[64], options[1024];
    const char *behind = strstr(line, " - ");
    _Static_assert(PATH_MAX == 4096, "as the formats say");
    if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) return;
    if (sscanf(behind, " - %63s %*s %1023s", type, options) != 2) return;
    undo_escapes(top);
    undo_escapes(point);
    if (strcmp(type, "cgroup2") == 0) set_mount(r, UNIFIED, top, point);
    if (strcmp(type, "cgroup") != 0) return;
    if (has_controller(options, "memory")) set_mount(r, MEMORY, top, point);
    if (has_controller(options, "cpu")) set_mount(r, CPU, top, point);
}

/* ---- all of it ---- */

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
    read_lines(&r, "proc/self/cgroup", take_group);
    read_lines(&r, "proc/self/mountinfo", take_mount);
    for (int h = 0; h < N_HIERARCHIES; h++) read_place(&r, (hierarchy)h);
    return r.limits;
}

bpt_cgroup_limits bpt_cgroup_read(void) {
    return bpt_cgroup_read_below("");
}
