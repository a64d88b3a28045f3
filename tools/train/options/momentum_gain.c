#include "tools/train/options/momentum_gain.h"

#include "tools/train/options/plain_number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double most = 100;

static bool is_auto(const char *text) {
    return strcmp(text, "auto") == 0;
}

static bool parse(const char *text, double *out) {
    return bpt_plain_number(text, out) && (*out == 0 || (*out >= 1 && *out <= most));
}

bpt_status bpt_momentum_gain_check(const char *text) {
    double number;
    if (is_auto(text) || parse(text, &number)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--shared-momentum: \"%s\" is none of 0, a number from 1 to %g, and auto", text,
        most);
    bpt_hint(
        "how many times a gradient counts of what it does by momentum alone, e.g. "
        "--shared-momentum 2; 0: each rank keeps its own");
    return status;
}

bool bpt_momentum_gain_follows(const char *text) {
    return is_auto(text);
}

double bpt_momentum_gain(const char *text, double scale) {
    double number;
    if (is_auto(text)) return scale > 1 ? sqrt(scale) : 0;
    (void)parse(text, &number);
    return number;
}
