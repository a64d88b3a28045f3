#include "outer/comm/first_error.h"

void bpt__first_error_note(bpt_error *first, bpt_status status) {
    if (first->status != BPT_OK || status == BPT_OK) return;
    bpt_error_get(first);
    first->status = status;
}

bpt_status bpt__first_error_put(const bpt_error *first) {
    return first->status == BPT_OK ? BPT_OK : bpt_error_put(first);
}
