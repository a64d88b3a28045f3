#include "tests/tools/made_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static const char text[] =
    "name: made\n"
    "input: [1, 12, 12]\n"
    "classes: 4\n"
    "layers:\n"
    "  - conv: {name: conv1, filters: 16, kernel: 3}\n"
    "  - relu\n"
    "  - fc: {name: fc1, outputs: 32}\n"
    "  - relu\n"
    "  - fc: {name: fc2, outputs: classes}\n";

made_world made;

int made_set_up(void **state) {
    (void)state;
    char *words[] = {"bpt-train", "--loader-threads", "3", "--prefetch", "5"};
    const bpt_writer_options train = made_options("train", MADE_C, MADE_H, MADE_W);
    bpt_option_request request;
    made.place = made_place_create();
    made.train = (bpt_split){.name = "train", .count = MADE_TRAIN};
    made.test = (bpt_split){.name = "test", .count = MADE_TEST};
    const bool done = bpt_options_parse(&bpt_train_command, (int)(sizeof words / sizeof *words),
                                        words, &made.options, &request, &made.set) == BPT_OK &&
                      bpt_model_parse("made", text, sizeof text - 1, NULL, &made.model) == BPT_OK &&
                      made_split(made.place.dataset, &train, 1, 50) == BPT_OK &&
                      bpt_dataset_open(made.place.dataset, &made.dataset) == BPT_OK;
    return done ? 0 : -1;
}

int made_tear_down(void **state) {
    (void)state;
    bpt_dataset_close(made.dataset);
    made_place_remove(&made.place);
    bpt_model_free(made.model);
    bpt_option_set_free(made.set);
    return 0;
}

bpt_job made_job_of(const bpt_train_options *o, bpt_update_choice update, uint32_t rank,
                    uint32_t n_ranks, uint32_t n_servers) {
    const uint32_t n_workers = n_ranks - n_servers;
    return (bpt_job){
        .options = o,
        .rank = rank,
        .n_ranks = n_ranks,
        .n_workers = n_workers,
        .n_servers = n_servers,
        .update = update,
        .partition = BPT_PARTITION_EVEN,
        .n_threads = 2,
        .ranks_on_host = 1,
        .model = made.model,
        .batch = MADE_BATCH,
        .batch_all = (uint64_t)MADE_BATCH * n_workers,
        .epoch_samples = MADE_TRAIN,
        .lr_factor = 1,
    };
}

bpt_job made_job_alone(const bpt_train_options *o) {
    return made_job_of(o, BPT_UPDATE_LOCAL, 0, 1, 0);
}

void made_job_give_data(bpt_job *job) {
    job->dataset = made.dataset;
    job->train = &made.train;
    job->test = &made.test;
}

bpt_memory_plan made_plan(const bpt_job *job) {
    bpt_memory_plan plan;
    assert_int_equal(bpt_memory_plan_make(job, &plan), BPT_OK);
    return plan;
}
