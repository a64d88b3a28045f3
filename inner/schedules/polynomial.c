#include "inner/schedules/schedule.h"

#include <math.h>

static double factor(const bpt_schedule *s, double epoch, double step_epochs) {
    (void)step_epochs;
    return pow(1.0 - epoch / s->total_epochs, s->power);
}

const bpt_schedule_kind bpt_schedule_polynomial = {"polynomial", factor};
