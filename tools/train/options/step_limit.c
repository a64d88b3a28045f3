#include "tools/train/options/step_limit.h"

#include "tools/train/options/plain_number.h"

#include <stdbool.h>
#include <string.h>

/* Steps of a training that goes well stay below it (docs/performance.md, "Accuracy of the ways of
 * updating").
 */
static const double of_scaled_rates = 0.01;

static const double most = 1e6;

static bool is_auto(const char *text) {
    return strcmp(text, "auto") == 0;
}

static bool parse(const char *text, double *out) {
    return bpt_plain_number(text, out) && *out >= 0 && *out <= most;
}

bpt_status bpt_step_limit_check(const char *text) {
    double number;
    if (is_auto(text) || parse(text, &number)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--step-limit: \"%s\" is neither a number from 0 to %g nor auto", text, most);
    bpt_hint("a part of the length of a layer's weights, e.g. --step-limit 0.01; 0: no limit");
    return status;
}

double bpt_step_limit(const char *text, double scale) {
    double number;
    if (is_auto(text)) return scale > 1.0 ? of_scaled_rates : 0.0;
    (void)parse(text, &number);
    return number;
}
