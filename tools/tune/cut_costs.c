#include "tools/tune/cut_costs.h"

#include "tools/interrupt.h"

#include <math.h>

enum { MIN_MARGIN_PERCENT = 5 };

static bpt_status note(const bpt_contender *c, bpt_cost_table *costs) {
    bpt_cost_table now = {0};
    bpt_status status = bpt_contender_note_parts(c, &now);
    if (status == BPT_OK) status = bpt_cost_table_merge(costs, &now);
    bpt_cost_table_clear(&now);
    return status;
}

static bpt_status run(bpt_contender *c, uint64_t n_steps, bpt_cost_table *costs) {
    double seconds;
    for (uint64_t i = 0; i < n_steps; i++) {
        BPT_TRY(
            bpt_interrupt_check("nothing is written", "run the same command again to start over"));
        BPT_TRY(bpt_contender_run(c, 1, &seconds));
        BPT_TRY(note(c, costs));
    }
    return BPT_OK;
}

bool bpt_cut_costs_too_large(bpt_status status) {
    return status == BPT_EFULL || status == BPT_EUSAGE || status == BPT_ENOMEM;
}

bpt_status bpt_cut_costs_measure(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                 bpt_cut cut, uint64_t n_steps, bpt_cost_table *costs) {
    const bool as_usual = cut.samples == 0 && cut.channels <= 1 && cut.rows <= 1;
    bpt_tuned_choices uncut = *choices;
    bpt_contender *c;
    uncut.cuts = NULL;
    if (!as_usual) bpt_model_set_cuts(subject->model, &cut);
    bpt_status status = bpt_contender_create(subject, &uncut, &c);
    bpt_model_set_cuts(subject->model, NULL);
    if (status != BPT_OK) return bpt_cut_costs_too_large(status) ? BPT_OK : status;
    if (as_usual || bpt_contender_n_cuts(c) > 0) status = run(c, n_steps, costs);
    bpt_contender_free(c);
    return status;
}

int64_t bpt_cut_costs_margin(double noise) {
    const double percent = fmin(ceil(100.0 * noise), BPT_COST_MARGIN_MAX);
    return (int64_t)fmax(percent, MIN_MARGIN_PERCENT);
}
