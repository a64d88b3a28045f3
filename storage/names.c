#include "storage/names.h"

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
        if (!sorted[i][0] || !bpt_text_is_utf8(sorted[i]))
            status = bpt_fail(wrong, "\"%s\" is no class name: empty or not UTF-8", sorted[i]);
        else if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            status = bpt_fail(wrong, "the class name \"%s\" is given twice", sorted[i]);
    bpt_free(sorted);
    return status;
}
