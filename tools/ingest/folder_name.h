/** @file tools/ingest/folder_name.h
 * Names of classes as names of folders.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_TOOLS_INGEST_FOLDER_NAME_H
#define BPT_TOOLS_INGEST_FOLDER_NAME_H

#include "base/status.h"

enum { BPT_FOLDER_NAME_SIZE = 256 };

/** What a folder's name cannot hold, or would make it hidden, becomes %XX (its byte in hex): '/',
 * '%', control characters, and a '.' at the beginning. Different names stay different.
 * @param[out] folder shape [BPT_FOLDER_NAME_SIZE], a text
 * @return BPT_OK, BPT_EDATA (longer than a folder's name can be) */
bpt_status bpt_folder_name(const char *class_name, char *folder);

#endif
