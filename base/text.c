#include "base/text.h"

#include <stdio.h>
#include <string.h>

void bpt_list_add(char *list, size_t size, const char *name) {
    const size_t length = strlen(list);
    snprintf(list + length, size - length, "%s%s", length ? ", " : "", name);
}
