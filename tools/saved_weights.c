#include "tools/saved_weights.h"

#include "inner/safetensors.h"

#include <sys/stat.h>

#include <stdbool.h>

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

bpt_status bpt_saved_weights_read(const char *path, const bpt_segments *s, const char *except,
                                  float *weights, size_t *n_alike) {
    const bpt_status status = bpt_safetensors_read_except(path, s, except, weights, n_alike);
    if (status == BPT_ENOENT || (status != BPT_OK && is_folder(path)))
        bpt_hint("the final weights of a run are RUN/model.safetensors");
    BPT_TRY(status);
    return bpt_segments_check(s, path, weights);
}
