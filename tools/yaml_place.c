#include "tools/yaml_place.h"

#include "base/yaml.h"

#include <sys/stat.h>

static bpt_status recognise(const char *path, const char *const *keys, size_t n_keys, bool *is) {
    bpt_yaml *doc;
    *is = false;
    const bpt_status status = bpt_yaml_load(path, &doc);
    if (status == BPT_EUSAGE) return BPT_OK; /* no YAML */
    BPT_TRY(status);
    *is = true;
    for (size_t i = 0; i < n_keys; i++) *is = *is && bpt_yaml_find(bpt_yaml_root(doc), keys[i]);
    bpt_yaml_free(doc);
    return BPT_OK;
}

bpt_status bpt_yaml_place_check(const char *path, const char *what, const char *const *keys,
                                size_t n_keys) {
    struct stat info;
    bool gives_way = false;
    if (lstat(path, &info) != 0) return BPT_OK; /* writing will tell what is wrong, if anything */
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        gives_way = info.st_size == 0;
        if (!gives_way) BPT_TRY(recognise(path, keys, n_keys, &gives_way));
    }
    if (gives_way) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EEXIST, "%s exists already and is no %s", path, what);
    bpt_hint("name another file");
    return status;
}
