#include "outer/data/idpa.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>

static bpt_status check_positive(const double *value, uint32_t m, const char *what) {
    for (uint32_t j = 0; j < m; j++)
        if (!(value[j] > 0) || !isfinite(value[j]))
            return bpt_fail(BPT_EUSAGE, "the %s of rank %u is %g, not a positive number", what, j,
                            value[j]);
    return BPT_OK;
}

static uint32_t largest(const double *value, uint32_t m) {
    uint32_t best = 0;
    for (uint32_t j = 1; j < m; j++)
        if (value[j] > value[best]) best = j;
    return best;
}

bpt_status bpt_share_proportional(uint64_t total, const double *weight, uint32_t m,
                                  uint64_t *count) {
    double sum = 0;
    for (uint32_t j = 0; j < m; j++) {
        if (!(weight[j] >= 0) || !isfinite(weight[j]))
            return bpt_fail(BPT_EUSAGE, "the share of rank %u is %g", j, weight[j]);
        sum += weight[j];
    }
    if (!(sum > 0) || !isfinite(sum)) return bpt_fail(BPT_EUSAGE, "the shares sum to %g", sum);

    double *remainder = NULL;
    BPT_TRY(BPT_NEW("remainders of shares", m, &remainder));
    uint64_t rest = total;
    for (uint32_t j = 0; j < m; j++) {
        const double quota = (double)total * (weight[j] / sum);
        count[j] = (uint64_t)quota;
        remainder[j] = quota - (double)count[j];
        rest -= count[j];
    }
    for (; rest > 0; rest--) {
        const uint32_t j = largest(remainder, m);
        count[j]++;
        remainder[j] -= 1;
    }
    bpt_free(remainder);
    return BPT_OK;
}

bpt_status bpt_idpa_first(uint64_t batch, const double *speed, uint32_t m, uint64_t *count) {
    BPT_TRY(check_positive(speed, m, "speed"));
    BPT_TRY(bpt_share_proportional(batch, speed, m, count));
    if (batch < m) return BPT_OK;
    for (uint32_t j = 0; j < m; j++) {
        if (count[j] > 0) continue;
        uint32_t richest = 0;
        for (uint32_t k = 1; k < m; k++)
            if (count[k] > count[richest]) richest = k;
        count[richest]--;
        count[j]++;
    }
    return BPT_OK;
}

/* Lowers the common time T until no rank that still gets samples holds more than its target.
 * @param[out] top_up T/tbar - held, 0 for ranks that get nothing */
static void level(uint64_t batch, const uint64_t *held, const double *tbar, uint32_t m,
                  double *top_up) {
    for (uint32_t j = 0; j < m; j++) top_up[j] = 1;
    for (bool again = true; again;) {
        double samples = (double)batch, rate = 0;
        for (uint32_t j = 0; j < m; j++) {
            if (top_up[j] <= 0) continue;
            samples += (double)held[j];
            rate += 1 / tbar[j];
        }
        again = false;
        for (uint32_t j = 0; j < m; j++) {
            if (top_up[j] <= 0) continue;
            top_up[j] = samples / rate / tbar[j] - (double)held[j];
            if (top_up[j] < 0) again = true;
            if (top_up[j] <= 0) top_up[j] = 0;
        }
    }
}

bpt_status bpt_idpa_next(uint64_t batch, const uint64_t *held, const double *tbar, uint32_t m,
                         uint64_t *count) {
    BPT_TRY(check_positive(tbar, m, "time per sample"));
    if (batch == 0) {
        for (uint32_t j = 0; j < m; j++) count[j] = 0;
        return BPT_OK;
    }
    double *top_up = NULL;
    BPT_TRY(BPT_NEW("shares of a batch", m, &top_up));
    level(batch, held, tbar, m, top_up);
    const bpt_status status = bpt_share_proportional(batch, top_up, m, count);
    bpt_free(top_up);
    return status;
}
