#include "tools/train/options/plain_number.h"

#include <stdlib.h>
#include <string.h>

bool bpt_plain_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && end == text + strspn(text, "0123456789.e-") && *end == '\0';
}
