#include "inner/schedules/schedule.h"

#include <math.h>

static double factor(const bpt_schedule *s, double epoch, double step_epochs) {
    (void)step_epochs;
    return 0.5 * (1.0 + cos(M_PI * epoch / s->total_epochs));
}

const bpt_schedule_kind bpt_schedule_cosine = {"cosine", factor};
