#include "inner/schedules/schedule.h"

#include <math.h>

/* 0.3 / 0.1 is a little less than 3. */
static double factor(const bpt_schedule *s, double epoch, double step_epochs) {
    (void)step_epochs;
    return pow(s->factor, floor(epoch / s->every_epochs + 1e-9));
}

const bpt_schedule_kind bpt_schedule_step = {"step", factor};
