#include "tools/train/check/check_scratch.h"

#include "base/file_system.h"
#include "base/memory.h"
#include "storage/dataset/scratch.h"
#include "tools/split_option.h"
#include "tools/train/data/scratch_need.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/servers.h"

#include <stdio.h>

/* What rank 0 tells of its dataset. */
typedef struct {
    uint64_t size; /* of the description; 0: it is refused, as rank 0 says itself */
    uint64_t train, test, record_bytes;
} offer;

/* Rank 0. @param[out] text the description; caller owns */
static bpt_status describe(const bpt_train_options *o, offer *of, char **text) {
    bpt_dataset *dataset;
    const bpt_split *train, *test;
    size_t size = 0;
    BPT_TRY(bpt_dataset_open(o->data, &dataset));
    bpt_status status = bpt_split_option_find(dataset, "train-split", o->train_split, &train);
    if (status == BPT_OK)
        status = bpt_split_option_find(dataset, "test-split", o->test_split, &test);
    if (status == BPT_OK) status = bpt_dataset_export(dataset, text, &size);
    if (status == BPT_OK) {
        const bpt_dataset_info *info = bpt_dataset_describe(dataset);
        *of = (offer){size, train->count, test->count, (uint64_t)info->C * info->H * info->W};
    }
    bpt_dataset_close(dataset);
    return status;
}

static void set_need(const bpt_train_options *o, uint32_t n_ranks, const offer *of,
                     bpt_check_facts *f) {
    const bpt_update_choice update = bpt_update_resolve((bpt_update_choice)o->update, n_ranks);
    uint32_t n_servers = 0;
    (void)bpt_servers_count(o, n_ranks, &n_servers); /* it has been found right */
    const bpt_scratch_job job = {
        .update = update,
        .partition = bpt_partition_resolve((bpt_partition_choice)o->partition, update),
        .n_ranks = n_ranks - n_servers,
        .epochs = o->epochs,
        .train = of->train,
        .test = of->test,
        .record_bytes = (size_t)of->record_bytes,
    };
    const bpt_scratch_need need = bpt_scratch_need_of(&job);
    f->scratch_even = need.even;
    f->scratch_most = need.most;
}

static bpt_status look_at_folder(const char *path, const char *text, const offer *of,
                                 bpt_check_facts *f) {
    f->scratch_place = bpt_file_system_at(path);
    BPT_TRY(bpt_path_check_writable(path));
    if (of->size == 0) return BPT_OK;
    return bpt_scratch_look(path, text, of->size, &f->scratch_there);
}

/* Another rank. */
static void look(const bpt_train_options *o, uint32_t rank, const char *text, const offer *of,
                 bpt_check_facts *f) {
    char *path = NULL;
    f->has_scratch = true;
    bpt_status status = bpt_strf(&path, "%s/rank-%u", o->scratch, rank);
    if (status == BPT_OK) status = look_at_folder(path, text, of, f);
    if (status != BPT_OK)
        snprintf(f->scratch_error, sizeof f->scratch_error, "%.255s", bpt_error_last()->text);
    bpt_free(path);
}

bpt_status bpt_check_scratch(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f) {
    const uint32_t rank = bpt_comm_rank(comm);
    offer of = {0};
    char *text = NULL;
    if (rank == 0 && f->data && describe(o, &of, &text) != BPT_OK) of.size = 0;
    BPT_TRY(bpt_comm_broadcast(comm, 0, &of, sizeof of));
    bpt_status status = BPT_OK;
    if (rank != 0) status = bpt_alloc("description", of.size, 1, (void **)&text);
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK && of.size > 0) status = bpt_comm_broadcast(comm, 0, text, of.size);
    const uint32_t size = bpt_comm_size(comm);
    if (status == BPT_OK && rank != 0 && !bpt_servers_have(o, rank, size)) {
        look(o, rank, text, &of, f);
        if (of.size > 0) set_need(o, size, &of, f);
    }
    bpt_free(text);
    return status;
}
