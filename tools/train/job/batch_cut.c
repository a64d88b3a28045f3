#include "tools/train/job/batch_cut.h"

#include <math.h>

void bpt_batch_cut(const double *speed, uint32_t n_ranks, uint64_t batch, uint64_t *cut) {
    double sum = 0, before = 0;
    for (uint32_t r = 0; r < n_ranks; r++) sum += speed[r];
    for (uint32_t r = 0; r < n_ranks; r++) {
        cut[r] = (uint64_t)llround((double)batch * before / sum);
        before += speed[r];
    }
    cut[n_ranks] = batch;
    for (uint32_t r = 1; r < n_ranks; r++)
        if (cut[r] <= cut[r - 1]) cut[r] = cut[r - 1] + 1;
    for (uint32_t r = n_ranks; r-- > 1;)
        if (cut[r] >= cut[r + 1]) cut[r] = cut[r + 1] - 1;
}
