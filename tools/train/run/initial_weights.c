#include "tools/train/run/initial_weights.h"

#include "base/memory.h"
#include "tools/saved_weights.h"

bpt_status bpt_initial_weights(const bpt_train_options *o, const bpt_segments *s, float *weights) {
    if (!o->init_weights || o->init_except) bpt_segments_initialise(s, (uint64_t)o->seed, weights);
    if (!o->init_weights) return BPT_OK;
    size_t n_alike;
    const bpt_status status =
        bpt_saved_weights_read(o->init_weights, s, o->init_except, weights, &n_alike);
    if (status == BPT_EUSAGE)
        bpt_hint("without --init-weights --dry-run lists the layers of the model");
    if (status == BPT_OK || n_alike == 0) return status;
    /* They are of the same model but for some layers. */
    bpt_hint("%s; layers of --init-except begin anew, and those of the file alone are passed over",
             bpt_error_last()->hint);
    return status;
}

bpt_status bpt_initial_weights_try(const bpt_train_options *o, const bpt_segments *s) {
    float *weights;
    BPT_TRY(BPT_NEW("initial weights", s->n_elements, &weights));
    const bpt_status status = bpt_initial_weights(o, s, weights);
    bpt_free(weights);
    return status;
}
