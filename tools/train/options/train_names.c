/* Words of the choices that a run is described by. */
#include "tools/train/options/train_options.h"

const char *bpt_update_choice_name(bpt_update_choice update) {
    static const char *const names[] = {"default", "auto",  "local",    "agwu",
                                        "sgwu",    "easgd", "allreduce"};
    return names[update];
}

const char *bpt_data_mode_name(bpt_data_mode mode) {
    return mode == BPT_DATA_SCATTER ? "scatter" : "shared";
}

const char *bpt_order_kind_name(bpt_order_kind order) {
    static const char *const names[] = {"shuffle", "blocks", "sequential"};
    return names[order];
}

const char *bpt_partition_choice_name(bpt_partition_choice partition) {
    static const char *const names[] = {"auto", "even", "idpa"};
    return names[partition];
}
