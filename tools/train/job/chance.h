/** @file tools/train/job/chance.h
 * What guessing comes to: a network that does no better has learned nothing.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_CHANCE_H
#define BPT_TOOLS_TRAIN_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

/** @param per_class samples of each class, shape [n_classes]
 * @return the cross entropy of whoever knows how frequent the classes are, and no image: of classes
 *         that are alike ln(n_classes); 0 where there are no samples */
double bpt_chance_loss(const uint64_t *per_class, uint32_t n_classes);

/** Whoever answers the most frequent class to every image is right as often as that comes. Who
 * draws lots is now and then luckier: by four standard deviations of so many answers in one of
 * 30000 cases.
 * @param accuracy part of all samples that were told right, 0 to 1
 * @param per_class samples of each class among them, shape [n_classes]
 * @return whether guessing comes to that */
bool bpt_chance_reaches(double accuracy, const uint64_t *per_class, uint32_t n_classes);

#endif
