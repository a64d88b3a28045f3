#include "tools/saved_weights.h"

#include "base/file.h"
#include "inner/weights/safetensors.h"

bpt_status bpt_saved_weights_read(const char *path, const bpt_segments *s, const char *except,
                                  float *weights, size_t *n_alike) {
    const bpt_status status = bpt_safetensors_read_except(path, s, except, weights, n_alike);
    if (status == BPT_ENOENT || (status != BPT_OK && bpt_path_is_folder(path)))
        bpt_hint("the final weights of a run are RUN/model.safetensors");
    BPT_TRY(status);
    return bpt_segments_check(s, path, weights);
}
