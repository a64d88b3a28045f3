/** @file base/option_values.h
 * Inside of base/: the value of one option, from text to the field that it sets.
 *
 * Threads: any. */
#ifndef BPT_BASE_OPTION_VALUES_H
#define BPT_BASE_OPTION_VALUES_H

#include "base/options.h"

/** Parses a value and checks its range. A BPT_OPTION_TEXT borrows @p text.
 * @param[out] field as bpt_option_type says; set on success only
 * @return BPT_OK, BPT_EUSAGE (names option and value) */
bpt_status bpt__option_parse(const bpt_option *o, const char *text, void *field);

/** @return bytes of the field that an option sets */
size_t bpt__option_size(const bpt_option *o);

/** Sets the value of an option that has neither been given nor a default: 0, false, NULL, -1s. */
void bpt__option_clear(const bpt_option *o, void *field);

/** @return whether a field has the option's default, or is clear where that has none */
bool bpt__option_is_default(const bpt_option *o, const void *field);

#endif
