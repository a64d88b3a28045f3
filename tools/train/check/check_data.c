/* Whether the ranks have the same dataset: by its description, which takes no reading of records.
 */
#include "storage/dataset/dataset.h"
#include "tools/split_option.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/data/dataset_identity.h"
#include "tools/train/data/delivery.h"

bpt_status bpt_check_data(const bpt_train_options *o, bool scattered, uint64_t *identity) {
    bpt_dataset *dataset = NULL;
    const bpt_split *split;
    bpt_status status = bpt_dataset_open(o->data, &dataset);
    if (status == BPT_ENOENT) bpt_hint("%s", ""); /* it is elsewhere, among hosts */
    BPT_TRY(status);
    status = bpt_split_option_find(dataset, "train-split", o->train_split, &split);
    if (status == BPT_OK)
        status = bpt_split_option_find(dataset, "test-split", o->test_split, &split);
    if (status == BPT_OK && scattered) status = bpt_delivery_check(dataset, o->data);
    if (status == BPT_OK) status = bpt_dataset_identify(bpt_dataset_describe(dataset), identity);
    bpt_dataset_close(dataset);
    return status;
}
