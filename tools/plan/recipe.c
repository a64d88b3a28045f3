#include "tools/plan/recipe.h"

#include "tools/precision.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/options/learning_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 20, NUMBER_SIZE = BPT_RECIPE_CHOICE_SIZE };

/* Options of bpt-train, as if somebody had typed them. */
typedef struct typed {
    char *words[MOST_WORDS];
    int n;
    char epochs[NUMBER_SIZE], batch[NUMBER_SIZE];
    bpt_train_options options;
    bpt_option_set *set;
} typed;

static void add(typed *t, const char *option, const char *value) {
    t->words[t->n++] = (char *)option;
    t->words[t->n++] = (char *)value;
}

const char *bpt_recipe_choice(const char *choices, int i, char text[BPT_RECIPE_CHOICE_SIZE]) {
    while (i-- > 0) choices = strchr(choices, '|') + 1;
    snprintf(text, BPT_RECIPE_CHOICE_SIZE, "%.*s", (int)strcspn(choices, "|"), choices);
    return text;
}

/* @param[out] t bpt_option_set_free(t->set), also on error */
static bpt_status type_options(const bpt_recipe *recipe, bpt_way way, uint32_t n_ranks, typed *t) {
    const bpt_plan_options *o = recipe->options;
    char precision[NUMBER_SIZE], optimizer[NUMBER_SIZE];
    bpt_option_request request;
    *t = (typed){.words = {"bpt-train"}, .n = 1};
    snprintf(t->epochs, sizeof t->epochs, "%.17g", o->epochs);
    snprintf(t->batch, sizeof t->batch, "%" PRId64, o->batch_size);
    add(t, "--model", o->model);
    add(t, "--epochs", t->epochs);
    add(t, "--precision", bpt_recipe_choice(BPT_PRECISIONS, o->precision, precision));
    add(t, "--optimizer", bpt_recipe_choice(BPT_OPTIMIZERS, o->optimizer, optimizer));
    add(t, "--update", bpt_update_choice_name(way.update));
    add(t, "--partition", bpt_partition_choice_name(way.partition));
    if (o->batch_is_given) add(t, "--batch-size", t->batch);
    BPT_TRY(bpt_options_parse(&bpt_train_command, t->n, t->words, &t->options, &request, &t->set));
    bpt_learning_options_default(&t->options, t->set);
    (void)bpt_learning_options_share(&t->options, t->set, n_ranks, false, 0);
    return BPT_OK;
}

bpt_status bpt_recipe_learning(const bpt_recipe *recipe, bpt_learning *learning) {
    const bpt_way local = {BPT_UPDATE_LOCAL, BPT_PARTITION_AUTO};
    typed t;
    const bpt_status status = type_options(recipe, local, 1, &t);
    if (status == BPT_OK) *learning = bpt_train_learning(&t.options, 1);
    bpt_option_set_free(t.set);
    return status;
}

bpt_status bpt_recipe_work(const bpt_recipe *recipe, bpt_way way, uint32_t n_ranks,
                           bpt_work *work) {
    const bpt_layer *layer;
    typed t;
    const bpt_status status = type_options(recipe, way, n_ranks, &t);
    if (status == BPT_OK)
        *work = (bpt_work){
            .weight_bytes = (double)recipe->model->segments.n_elements * sizeof(float),
            .gradient = recipe->gradient,
            .batch = (uint32_t)t.options.batch_size,
            .least_batch = bpt_model_least_batch(recipe->model, &layer),
            .epoch_samples = recipe->epoch_samples,
            .total_samples = bpt_train_total_samples(&t.options, recipe->epoch_samples),
            .shared_momentum = bpt_train_shares_momentum(&t.options, way.update, n_ranks),
        };
    bpt_option_set_free(t.set);
    return status;
}

static bpt_status plan_memory(const bpt_recipe *recipe, const typed *t, uint32_t n_ranks,
                              const bpt_node *node, uint32_t part, size_t *bytes) {
    bpt_job job = {
        .options = &t->options,
        .n_ranks = n_ranks,
        .ranks_on_host = 1,
        .n_threads = node->threads,
        .model = (bpt_model *)recipe->model, /* not changed */
        .epoch_samples = recipe->epoch_samples,
    };
    bpt_memory_plan plan;
    BPT_TRY(bpt_job_choose(&job));
    if (job.update == BPT_UPDATE_ALLREDUCE) job.batch = part;
    BPT_TRY(bpt_memory_plan_make(&job, &plan));
    *bytes = plan.total;
    return BPT_OK;
}

bpt_status bpt_recipe_memory(const bpt_recipe *recipe, bpt_way way, uint32_t n_ranks,
                             const bpt_node *node, uint32_t part, size_t *bytes) {
    typed t;
    bpt_status status = type_options(recipe, way, n_ranks, &t);
    if (status == BPT_OK) status = plan_memory(recipe, &t, n_ranks, node, part, bytes);
    bpt_option_set_free(t.set);
    return status;
}
