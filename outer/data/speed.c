#include "outer/data/speed.h"

static double sample_ns(bpt_timing t) {
    return t.samples > 0 ? (double)t.busy_ns / (double)t.samples : 0;
}

double bpt_speed_sample_ns(const bpt_speed *s) {
    return sample_ns(s->n > 0 ? s->window : s->next);
}

bool bpt_speed_settled(const bpt_speed *s) {
    return s->n >= 8;
}

/* @return -1 or 1 where the measurement is far below or above the mean, 0 where it is near */
static int side(double mean, bpt_timing timing) {
    const double far = 0.25, ns = sample_ns(timing);
    return ns > (1 + far) * mean ? 1 : ns < (1 - far) * mean ? -1 : 0;
}

static void add(bpt_speed *s, bpt_timing timing) {
    enum { LONG = 32 };
    if (s->n == LONG) {
        s->window.samples /= 2; /* there were as many as measurements, or more */
        s->window.busy_ns /= 2;
        s->n = LONG / 2;
    }
    s->window.samples += timing.samples;
    s->window.busy_ns += timing.busy_ns;
    s->n++;
}

/* A whole measurement. */
static void take(bpt_speed *s, bpt_timing timing) {
    const double mean = sample_ns(s->window);
    const int now = s->n > 0 ? side(mean, timing) : 0;
    if (now != 0 && now == side(mean, s->last)) {
        s->window = s->last;
        s->n = 1;
    }
    add(s, timing);
    s->last = timing;
}

void bpt_speed_measure(bpt_speed *s, bpt_timing timing) {
    const uint64_t enough_ns = 250000000;
    if (timing.samples == 0 || timing.busy_ns == 0) return;
    s->next.samples += timing.samples;
    s->next.busy_ns += timing.busy_ns;
    if (s->next.busy_ns < enough_ns) return;
    take(s, s->next);
    s->next = (bpt_timing){0};
}
