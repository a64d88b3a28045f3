/** @file tools/plan/recipe.h
 * What bpt-train would do by its own rules for a way of learning and a number of ranks: batch,
 * lengths, memory.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_RECIPE_H
#define BPT_TOOLS_RECIPE_H

#include "inner/optimizers/optimizer.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/predict.h"

/** What does not change from way to way; borrowed. */
typedef struct bpt_recipe {
    const bpt_plan_options *options;
    const bpt_model *model;
    bpt_gradient_schedule gradient;
    uint64_t epoch_samples;
} bpt_recipe;

enum { BPT_RECIPE_CHOICE_SIZE = 32 };

/** @param choices as of a bpt_option; @param i below their number
 * @param[out] text choice number @p i
 * @return text */
const char *bpt_recipe_choice(const char *choices, int i, char text[BPT_RECIPE_CHOICE_SIZE]);

/** @param[out] learning of a rank by itself, which steps are measured with
 * @return as bpt_recipe_work() */
bpt_status bpt_recipe_learning(const bpt_recipe *recipe, bpt_learning *learning);

/** @param[out] work for that many ranks that go that way; borrows from the recipe
 * @return BPT_OK, BPT_EUSAGE (bpt-train would refuse the options), BPT_ENOMEM */
bpt_status bpt_recipe_work(const bpt_recipe *recipe, bpt_way way, uint32_t n_ranks, bpt_work *work);

/** @param node of the rank
 * @param part samples of a step that it has under allreduce; of other ways any
 * @param[out] bytes that the rank takes, of its host where it computes on a device
 * @return as bpt_recipe_work(), and as bpt_memory_plan_make() */
bpt_status bpt_recipe_memory(const bpt_recipe *recipe, bpt_way way, uint32_t n_ranks,
                             const bpt_node *node, uint32_t part, size_t *bytes);

#endif
