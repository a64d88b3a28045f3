#include "tools/train/job/host_place.h"

bpt_host_place bpt_host_place_of(const bpt_comm *comm, uint32_t n_workers) {
    const uint32_t rank = bpt_comm_rank(comm);
    bpt_host_place place = {0};
    for (uint32_t r = 0; r < n_workers; r++) {
        if (!bpt_comm_together(comm, r, rank)) continue;
        place.index += r < rank;
        place.n++;
    }
    return place;
}
