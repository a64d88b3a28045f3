#include "tools/train/job/rank_list.h"

#include "base/text.h"

#include <stdio.h>

void bpt_rank_list(const double *value, uint32_t n_ranks, int digits, const char *unit,
                   char *list) {
    uint32_t least = 0, most = 0;
    list[0] = '\0';
    for (uint32_t r = 0; r < n_ranks; r++) {
        char one[40];
        if (value[r] < value[least]) least = r;
        if (value[r] > value[most]) most = r;
        snprintf(one, sizeof one, "%.*f%.8s", digits, value[r], unit);
        if (n_ranks <= BPT_RANK_LIST_MOST) bpt_list_add(list, BPT_RANK_LIST_SIZE, one);
    }
    if (n_ranks <= BPT_RANK_LIST_MOST) return;
    snprintf(list, BPT_RANK_LIST_SIZE, "from %.*f%.8s on rank %u to %.*f%.8s on rank %u", digits,
             value[least], unit, least, digits, value[most], unit, most);
}
