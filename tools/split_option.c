#include "tools/split_option.h"

bpt_status bpt_split_option_find(const bpt_dataset *dataset, const char *option, const char *name,
                                 const bpt_split **split) {
    const bpt_status status = bpt_dataset_find(dataset, name, split);
    if (status != BPT_ENOENT) return status;
    bpt_hint("%s; --%s names one of them, and `bpt-ingest split` makes two of one",
             bpt_error_last()->hint, option);
    return status;
}
