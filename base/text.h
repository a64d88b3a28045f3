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

/** Copies a text that somebody else has written so that it breaks no line and steers no terminal:
 * a control character becomes \xNN, one of two bytes (U+0080 to U+009F) \u00NN. Cut between
 * characters.
 * @param[out] out shape [size], a text */
void bpt_text_escape(const char *text, char *out, size_t size);

#endif
