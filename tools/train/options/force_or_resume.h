/** @file tools/train/options/force_or_resume.h
 * Which of --force and --resume counts, where one stands on the command line and the other in a
 * configuration file: to replace the run's folder and to go on in it exclude each other.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_FORCE_OR_RESUME_H
#define BPT_TOOLS_FORCE_OR_RESUME_H

#include "tools/train/options/train_options.h"

/** Takes back what a file says of the two where the command line says the other of the same folder.
 * Paths are compared by their names alone, so that all ranks choose alike, whatever their hosts
 * see; where only the file system tells that they are the same, and where both stand side by side,
 * nothing is chosen, and the run refuses them.
 * @return the option of the file that is not used, "force" or "resume"; NULL: both are as given */
const char *bpt_force_or_resume(bpt_train_options *options, const bpt_option_set *set);

#endif
