#include "tools/train/options/idpa_rounds.h"

#include "tools/train/options/plain_number.h"

#include <math.h>
#include <string.h>

static const double most = 64, most_auto = 4;

bool bpt_idpa_rounds_follow(const char *text) {
    return strcmp(text, "auto") == 0;
}

static bool parse(const char *text, double *out) {
    return bpt_plain_number(text, out) && *out >= 1 && *out <= most && *out == floor(*out);
}

bpt_status bpt_idpa_rounds_check(const char *text) {
    double number;
    if (bpt_idpa_rounds_follow(text) || parse(text, &number)) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--idpa-rounds: \"%s\" is neither a whole number from 1 to %g nor auto", text,
        most);
    bpt_hint("rounds in which the data are given out, e.g. --idpa-rounds 2; 1: all at once");
    return status;
}

/* A round comes when its ranks have been over what they hold: 1/A of the data, then 2/A, ... So
 * the last of A comes after (A - 1) / 2 epochs at the soonest. */
uint32_t bpt_idpa_rounds(const char *text, double epochs, uint32_t n_workers) {
    double number;
    if (!bpt_idpa_rounds_follow(text)) return parse(text, &number) ? (uint32_t)number : 1;
    if (n_workers <= 1) return 1;
    return (uint32_t)fmin(most_auto, 1 + floor(epochs / 2));
}
