#include "outer/nap.h"

#include "base/clock.h"

#include <time.h>

#define WINDOW_NS   100000000u
#define LEAST_SHARE 0.125

typedef struct pace {
    uint64_t min_ns, max_ns;
    uint64_t divisor; /* of the quiet time */
} pace;

static const pace calm = {.min_ns = 1000000, .max_ns = 4000000, .divisor = 1};
static const pace hurried = {.min_ns = 20000, .max_ns = 200000, .divisor = 8};

static bool ends_window(const bpt__core_share *s, uint64_t wall_ns) {
    return wall_ns - s->wall_ns >= WINDOW_NS;
}

void bpt__core_share_add(bpt__core_share *s, uint64_t wall_ns, uint64_t cpu_ns) {
    if (!ends_window(s, wall_ns)) return;
    if (s->wall_ns) s->share = (double)(cpu_ns - s->cpu_ns) / (double)(wall_ns - s->wall_ns);
    s->wall_ns = wall_ns;
    s->cpu_ns = cpu_ns;
}

void bpt__core_share_now(bpt__core_share *s) {
    const uint64_t wall_ns = bpt_clock_ns();
    struct timespec cpu;
    if (!ends_window(s, wall_ns)) return;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    bpt__core_share_add(s, wall_ns, (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec);
}

/* How many times as long as that of a whole core. */
static double stretch(const bpt__core_share *s) {
    if (s->share == 0 || s->share >= 1) return 1;
    return 1 / (s->share < LEAST_SHARE ? LEAST_SHARE : s->share);
}

uint64_t bpt__nap_ns(uint64_t quiet_ns, bool waited_for, const bpt__core_share *s) {
    const pace *p = waited_for ? &hurried : &calm;
    uint64_t nap_ns = quiet_ns / p->divisor;
    if (nap_ns < p->min_ns) nap_ns = p->min_ns;
    if (nap_ns > p->max_ns) nap_ns = p->max_ns;
    return waited_for ? nap_ns : (uint64_t)((double)nap_ns * stretch(s));
}
