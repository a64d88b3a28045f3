/** @file tools/option_aliases.h
 * What options of bpt-train, bpt-eval and bpt-tune are called in programs that their users come
 * from: PyTorch's examples, timm, Caffe, darknet.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_OPTION_ALIASES_H
#define BPT_TOOLS_OPTION_ALIASES_H

#include "base/options.h"

/** For bpt_command.aliases. Names whose nearest option is the right one are not in it. */
extern const bpt_option_alias bpt_option_aliases[];

#endif
