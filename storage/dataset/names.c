#include "storage/dataset/names.h"

#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool bpt__is_split_name(const char *name) {
    const size_t length = strlen(name);
    bool good = length >= 1 && length <= BPT__MAX_SPLIT_NAME && isalnum((unsigned char)name[0]);
    for (size_t i = 0; i < length; i++)
        good &= isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
    return good;
}

bpt_status bpt_split_name_check(const char *name) {
    if (bpt__is_split_name(name)) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "\"%s\" is no name for a split", name);
    bpt_hint("use up to %d letters, digits, '.', '_' and '-', beginning with a letter or digit",
             BPT__MAX_SPLIT_NAME);
    return status;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bpt_status check_each(const char *where, const char *const *names, size_t n,
                             bpt_status wrong) {
    for (size_t i = 0; i < n; i++)
        if (!names[i][0] || !bpt_text_is_utf8(names[i]))
            return bpt_fail(wrong, "%s: \"%s\", number %zu, is no class name: empty or not UTF-8",
                            where, names[i], i + 1);
    return BPT_OK;
}

bpt_status bpt_class_names_check(const char *where, const char *const *names, size_t n,
                                 bpt_status wrong) {
    const char **sorted;
    BPT_TRY(check_each(where, names, n, wrong));
    BPT_TRY(BPT_NEW("class names", n, &sorted));
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_texts);
    bpt_status status = BPT_OK;
    for (size_t i = 1; i < n && status == BPT_OK; i++)
        if (strcmp(sorted[i], sorted[i - 1]) == 0)
            status = bpt_fail(wrong, "%s: the class name \"%s\" is given twice", where, sorted[i]);
    bpt_free(sorted);
    return status;
}
