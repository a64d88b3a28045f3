#include "storage/names.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool bpt__is_utf8(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        const int n = *p < 0x80                 ? 0
                      : *p >= 0xC2 && *p < 0xE0 ? 1
                      : (*p & 0xF0) == 0xE0     ? 2
                      : *p >= 0xF0 && *p < 0xF5 ? 3
                                                : -1;
        if (n < 0) return false;
        const unsigned char lead = *p++, next = *p;
        if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
            (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F))
            return false;
        for (int i = 0; i < n; i++)
            if ((*p++ & 0xC0) != 0x80) return false;
    }
    return true;
}

bool bpt__is_split_name(const char *name) {
    const size_t length = strlen(name);
    bool good = length >= 1 && length <= BPT__MAX_SPLIT_NAME && isalnum((unsigned char)name[0]);
    for (size_t i = 0; i < length; i++)
        good &= isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
    return good;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bpt_status bpt__class_names_check(const char *const *names, size_t n, bpt_status wrong) {
    const char **sorted;
    BPT_TRY(BPT_NEW("class names", n, &sorted));
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_texts);
    bpt_status status = BPT_OK;
    for (size_t i = 0; i < n && status == BPT_OK; i++)
        if (!sorted[i][0] || !bpt__is_utf8(sorted[i]))
            status = bpt_fail(wrong, "\"%s\" is no class name: empty or not UTF-8", sorted[i]);
        else if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            status = bpt_fail(wrong, "the class name \"%s\" is given twice", sorted[i]);
    bpt_free(sorted);
    return status;
}
