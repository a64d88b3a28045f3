/** @file base/text.h
 * Small texts for messages, in memory of a fixed size: what does not fit is cut, or left out.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_BASE_TEXT_H
#define BPT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** Adds a name to a list of names with commas between them. Where it does not fit, "..." ends the
 * list for good, if need be in the place of the last names.
 * @param list shape [size], a text; "" is a list of none */
void bpt_list_add(char *list, size_t size, const char *name);

/** Copies a text that somebody else has written so that it breaks no line and steers no terminal:
 * a control character becomes \xNN, one of more bytes (U+0080 to U+009F), and what breaks lines
 * (U+2028, U+2029) or is no character (U+FFFE, U+FFFF), \uNNNN. Cut between characters.
 * @param[out] out shape [size], a text */
void bpt_text_escape(const char *text, char *out, size_t size);

/** Copies a text, such as a path, as one word of a shell, for messages that say what to type: in
 * single quotes where a shell would take it for something else.
 * @param[out] out shape [size], size >= 1, a text; "" on failure, since a part is another word
 * @return whether all of it fits, and can be typed (bpt_text_unfit() has no fault to find) */
bool bpt_text_quote(const char *text, char *out, size_t size);

/** @return the code of the first character of a text if it does not belong into one, as
 * configuration files see it: a control character, U+2028, U+2029, U+FFFE, U+FFFF; else 0 */
unsigned bpt_text_unfit(const char *text);

/** Makes a text fit for one line of a terminal, in place: names come from files and command lines,
 * and may not break the line nor steer the terminal. Control characters, and U+0080 to U+009F,
 * which act as they do, become "?". */
void bpt_text_keep_printable(char *text);

enum { BPT_TIME_LEFT_SIZE = 16 };

/** Writes how long something will take yet: "04:10", minutes and seconds, from an hour on
 * "1:04:10".
 * @param seconds from 0 on; what is beyond 3.5e6, or no number, becomes that, "972:13:20"
 * @param[out] text shape [BPT_TIME_LEFT_SIZE] */
void bpt_text_time_left(double seconds, char *text);

/** @return whether a text is UTF-8: no surrogates, none longer than need be */
bool bpt_text_is_utf8(const char *text);

#endif
