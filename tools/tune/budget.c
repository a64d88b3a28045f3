#include "tools/tune/budget.h"

#include "base/clock.h"
#include "tools/spread.h"

double bpt_budget_left(const bpt_tune_budget *b) {
    return b->total - bpt_clock_seconds_since(b->start_ns);
}

void bpt_budget_note(double *expected, double seconds) {
    *expected = *expected > 0.0 ? (*expected + seconds) / 2.0 : seconds;
}

bool bpt_budget_has_round(const bpt_tune_budget *b) {
    return bpt_budget_left(b) >= 1.5 * b->round;
}

double bpt_budget_fewest(const bpt_tune_budget *b) {
    return b->build + BPT_SPREAD_MIN * b->round;
}

double bpt_budget_share(const bpt_tune_budget *b, double left, unsigned n_pending,
                        unsigned confirms) {
    const double fewest = bpt_budget_fewest(b);
    const double share = left / (n_pending + confirms);
    if (left < fewest * (confirms > 0 ? 2 : 1)) return 0.0;
    return share > fewest ? share : fewest;
}
