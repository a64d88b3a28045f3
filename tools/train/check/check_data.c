/* Whether the ranks have the same dataset: by its description, which takes no reading of records.
 */
#include "storage/dataset.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/data/dataset_identity.h"

bpt_status bpt_check_data(const char *path, const char *train, const char *test,
                          uint64_t *identity) {
    bpt_dataset *dataset = NULL;
    const bpt_split *split;
    BPT_TRY(bpt_dataset_open(path, &dataset));
    bpt_status status = bpt_dataset_find(dataset, train, &split);
    if (status == BPT_OK) status = bpt_dataset_find(dataset, test, &split);
    if (status == BPT_OK) status = bpt_dataset_identify(bpt_dataset_describe(dataset), identity);
    bpt_dataset_close(dataset);
    return status;
}
