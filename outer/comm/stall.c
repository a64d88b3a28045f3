#include "outer/comm/stall.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMED = 8 };

static bool is_long(const bpt__rank_view *view, double limit_s) {
    return view->answered && view->at.held_s >= limit_s / 2;
}

bool bpt__stall_is_mine(const bpt__rank_view *views, uint32_t n, uint32_t me, double limit_s) {
    const bool own = views[me].at.kind == BPT__OWN;
    for (uint32_t r = 0; r < n; r++) {
        if (r == me || !is_long(&views[r], limit_s)) continue;
        if (views[r].at.kind == BPT__WAITS && (own || r < me)) return false;
        if (views[r].at.kind == BPT__OWN && own && r < me) return false;
    }
    return true;
}

/* Who is late, from the strictest rule to the mildest. */
typedef enum { SILENT_OR_LONG_BUSY, BUSY, NOBODY } rule;

static bool is_late(const bpt__rank_view *view, rule by, double limit_s) {
    if (!view->answered) return true;
    if (view->at.kind == BPT__WAITS || view->at.kind == BPT__IDLES) return false;
    return by == BUSY || is_long(view, limit_s);
}

static uint32_t count_late(const bpt__rank_view *views, uint32_t n, uint32_t me, rule by,
                           double limit_s) {
    uint32_t n_late = 0;
    for (uint32_t r = 0; r < n; r++) n_late += r != me && is_late(&views[r], by, limit_s);
    return n_late;
}

static void append(char *text, size_t size, const char *more) {
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", more);
}

static void append_rank(const bpt__rank_view *view, uint32_t rank, const char *host, char *text,
                        size_t size) {
    char one[BPT__HOST_SIZE + BPT__WHAT_SIZE + 80];
    if (!view->answered)
        snprintf(one, sizeof one, "rank %u on %s (does not answer)", rank, host);
    else
        snprintf(one, sizeof one, "rank %u on %s (%s %s for %.0f s)", rank, host,
                 view->at.kind == BPT__OWN ? "waiting for" : "busy with", view->at.what,
                 view->at.held_s);
    append(text, size, one);
}

static bool any_silent(const bpt__rank_view *views, uint32_t n) {
    for (uint32_t r = 0; r < n; r++)
        if (!views[r].answered) return true;
    return false;
}

const char *bpt__stall_describe(const bpt__rank_view *views, uint32_t n, uint32_t me,
                                double limit_s, char (*hosts)[BPT__HOST_SIZE], char *text,
                                size_t size) {
    const bpt__activity *mine = &views[me].at;
    if (mine->kind == BPT__OWN) {
        snprintf(text, size, "rank %u on %s has waited %.0f s for %s", me, hosts[me], mine->held_s,
                 mine->what);
        return "look at that host's disks and network file systems";
    }
    snprintf(text, size, "rank %u on %s has waited %.0f s at %s for ", me, hosts[me], mine->held_s,
             mine->what);
    rule by = SILENT_OR_LONG_BUSY;
    uint32_t n_late = 0, n_named = 0;
    while (by != NOBODY && (n_late = count_late(views, n, me, by, limit_s)) == 0) by++;
    if (by == NOBODY) {
        append(text, size, "others, which all wait too");
        return "messages get lost: name the network to use with --mca btl_tcp_if_include";
    }
    for (uint32_t r = 0; r < n && n_named < MAX_NAMED; r++) {
        if (r == me || !is_late(&views[r], by, limit_s)) continue;
        if (n_named++ > 0) append(text, size, ", ");
        append_rank(&views[r], r, hosts[r], text, size);
    }
    if (n_late > n_named) {
        char rest[32];
        snprintf(rest, sizeof rest, " and %u more", n_late - n_named);
        append(text, size, rest);
    }
    return any_silent(views, n) ? "its process is stopped, its host down, or the network to it cut"
                                : "look at that host's load, disks and network file systems";
}
