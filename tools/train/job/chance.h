/** @file tools/train/job/chance.h
 * What guessing comes to: a network that does no better has learned nothing.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_TRAIN_CHANCE_H
#define BPT_TOOLS_TRAIN_CHANCE_H

#include <stdint.h>

/** @param per_class samples of each class, shape [n_classes]
 * @return the cross entropy of whoever knows how frequent the classes are, and no image: of classes
 *         that are alike ln(n_classes); 0 where there are no samples */
double bpt_chance_loss(const uint64_t *per_class, uint32_t n_classes);

#endif
