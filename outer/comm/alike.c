#include "outer/comm/alike.h"

#include "base/memory.h"

/* As it travels. */
typedef struct {
    uint64_t value, known;
} fact;

/* Compares one thing in the table of all ranks, whose rows are n facts. */
static bpt_status compare(const bpt_comm *comm, const fact *column, uint32_t n,
                          const char *unlike) {
    const uint32_t n_ranks = bpt_comm_size(comm);
    uint32_t first = 0;
    while (first < n_ranks && !column[(size_t)first * n].known) first++;
    for (uint32_t r = first + 1; r < n_ranks; r++) {
        const fact *theirs = &column[(size_t)r * n];
        if (theirs->known && theirs->value != column[(size_t)first * n].value)
            return bpt_fail(BPT_EUSAGE, "rank %u on %s %s: not what rank %u has", r,
                            bpt_comm_host(comm, r), unlike, first);
    }
    return BPT_OK;
}

bpt_status bpt__alike(bpt_comm *comm, const bpt__common *mine, uint32_t n) {
    fact *sent = NULL, *all = NULL;
    bpt_status status = BPT_NEW("facts of a rank", n, &sent);
    if (status == BPT_OK) status = BPT_NEW("facts of ranks", (size_t)n * bpt_comm_size(comm), &all);
    status = bpt_comm_agree(comm, status);
    for (uint32_t i = 0; i < n && status == BPT_OK; i++)
        sent[i] = (fact){mine[i].value, !mine[i].unknown};
    if (status == BPT_OK) status = bpt_comm_allgather(comm, sent, n * sizeof *sent, all);
    for (uint32_t i = 0; i < n && status == BPT_OK; i++)
        status = compare(comm, all + i, n, mine[i].unlike);
    bpt_free(all);
    bpt_free(sent);
    return status;
}
