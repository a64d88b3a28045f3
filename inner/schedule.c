#include "inner/schedule.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static double step_factor(const bpt_schedule *s, double epoch) {
    double factor = 1.0;
    for (size_t i = 0; i < s->n_steps && epoch >= s->at_epochs[i]; i++) factor *= s->factor;
    return factor;
}

double bpt_schedule_rate(const bpt_schedule *s, double epoch, double step_epochs) {
    const double end = fmin(epoch + step_epochs, s->total_epochs);
    const double warmup = end < s->warmup_epochs ? end / s->warmup_epochs : 1.0;
    epoch = fmin(epoch, s->total_epochs);
    double factor = 1.0;
    switch (s->kind) {
    case BPT_SCHEDULE_CONSTANT:
        break;
    case BPT_SCHEDULE_STEP:
        factor = step_factor(s, epoch);
        break;
    case BPT_SCHEDULE_COSINE:
        factor = 0.5 * (1.0 + cos(PI * epoch / s->total_epochs));
        break;
    }
    return s->base * warmup * factor;
}
