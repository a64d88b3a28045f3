#include "tools/tune/budget.h"

#include "base/clock.h"
#include "tools/tune/spread.h"

double bpt_budget_left(const bpt_tune_budget *b) {
    return b->total - bpt_clock_seconds_since(b->start_ns);
}

bool bpt_budget_has_round(const bpt_tune_budget *b) {
    return bpt_budget_left(b) >= b->longest_round;
}

double bpt_budget_share(const bpt_tune_budget *b, double left, unsigned n_pending,
                        unsigned confirms) {
    const double fewest = b->longest_build + BPT_SPREAD_MIN * b->longest_round;
    const double share = left / (n_pending + confirms);
    if (left < fewest * (confirms > 0 ? 2 : 1)) return 0.0;
    return share > fewest ? share : fewest;
}
