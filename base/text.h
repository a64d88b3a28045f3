/** @file base/text.h
 * Small texts for messages, in memory of a fixed size: what does not fit is cut.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_BASE_TEXT_H
#define BPT_BASE_TEXT_H

#include <stddef.h>

/** Adds a name to a list of names with commas between them.
 * @param list shape [size], a text; "" is a list of none */
void bpt_list_add(char *list, size_t size, const char *name);

#endif
