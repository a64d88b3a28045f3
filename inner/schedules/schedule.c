#include "inner/schedules/schedule.h"

#include <math.h>

static const bpt_schedule_kind *const kinds[] = {
    &bpt_schedule_constant, &bpt_schedule_step,     &bpt_schedule_multistep,
    &bpt_schedule_cosine,   &bpt_schedule_onecycle, &bpt_schedule_polynomial,
};

const bpt_schedule_kind *bpt_schedule_kind_at(size_t i) {
    return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

double bpt_schedule_rate(const bpt_schedule *s, double epoch, double step_epochs) {
    const double end = fmin(epoch + step_epochs, s->total_epochs);
    double warmup = 1.0;
    if (end < s->warmup_epochs)
        warmup = s->warmup_start + (1.0 - s->warmup_start) * (end / s->warmup_epochs);
    return s->base * warmup * s->kind->factor(s, fmin(epoch, s->total_epochs), step_epochs);
}

double bpt_schedule_highest(const bpt_schedule *s, double epoch) {
    enum { POINTS = 1000 };
    double highest = 0;
    for (int i = 1; i <= POINTS && epoch > 0; i++)
        highest = fmax(highest, bpt_schedule_rate(s, epoch * i / POINTS, 0));
    return highest;
}
