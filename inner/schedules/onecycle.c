#include "inner/schedules/schedule.h"

#include <math.h>

static double anneal(double from, double to, double part) {
    return to + 0.5 * (from - to) * (1.0 + cos(M_PI * part));
}

/* The top is a step before pct_start of the run, and the end a step before the end, since the first
 * step is number 0. A run of very few steps begins behind its top. */
static double factor(const bpt_schedule *s, double epoch, double step_epochs) {
    const double first = 1.0 / s->div_factor, last = first / s->final_div_factor;
    const double top = s->pct_start * s->total_epochs - step_epochs;
    const double end = s->total_epochs - step_epochs;
    if (epoch < top) return anneal(first, 1.0, epoch / top);
    return anneal(1.0, last, fmin((epoch - top) / (end - top), 1.0));
}

const bpt_schedule_kind bpt_schedule_onecycle = {"onecycle", factor};
