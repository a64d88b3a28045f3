#include "inner/schedules/schedule.h"

static double factor(const bpt_schedule *s, double epoch, double step_epochs) {
    (void)step_epochs;
    double product = 1.0;
    for (size_t i = 0; i < s->n_milestones && epoch >= s->milestones[i]; i++) product *= s->factor;
    return product;
}

const bpt_schedule_kind bpt_schedule_multistep = {"multistep", factor};
