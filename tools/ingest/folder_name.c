#include "tools/ingest/folder_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bpt_status bpt_folder_name(const char *name, char *folder) {
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        const bool odd = *p == '/' || *p == '%' || *p < ' ' || *p == 0x7F ||
                         (*p == '.' && p == (const unsigned char *)name);
        if (n + 4 > BPT_FOLDER_NAME_SIZE)
            return bpt_fail(BPT_EDATA, "the class \"%.60s...\" has too long a name for a folder",
                            name);
        if (odd)
            n += (size_t)snprintf(folder + n, 4, "%%%02X", *p);
        else
            folder[n++] = (char)*p;
    }
    folder[n] = '\0';
    return BPT_OK;
}
