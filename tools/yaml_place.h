/** @file tools/yaml_place.h
 * Where a program may write a YAML file of its own.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_YAML_PLACE_H
#define BPT_TOOLS_YAML_PLACE_H

#include "base/status.h"

#include <stddef.h>

/** Checks that what is at @p path may give way to a new file: only one of the same kind, or an
 * empty one. Nothing there is right too.
 * @param what what a file of another kind is not: "file of bpt-tune"
 * @param keys that files of the kind have, in whatever format, and no others; shape [n_keys]
 * @return BPT_OK, BPT_EEXIST (anything else, a link that leads nowhere included; with hint),
 *         BPT_EIO (it cannot be read), BPT_ENOMEM */
bpt_status bpt_yaml_place_check(const char *path, const char *what, const char *const *keys,
                                size_t n_keys);

#endif
