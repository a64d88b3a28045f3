#include "tools/train/run/initial_weights.h"

#include "inner/safetensors.h"

bpt_status bpt_initial_weights(const bpt_train_options *o, const bpt_segments *s, float *weights) {
    if (!o->init_weights) {
        bpt_segments_initialise(s, (uint64_t)o->seed, weights);
        return BPT_OK;
    }
    const bpt_status status = bpt_safetensors_read(o->init_weights, s, weights);
    if (status == BPT_ENOENT) bpt_hint("the final weights of a run are RUN/model.safetensors");
    BPT_TRY(status);
    return bpt_segments_check(s, o->init_weights, weights);
}
