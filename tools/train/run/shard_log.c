#include "tools/train/run/shard_log.h"

#include "base/json.h"
#include "base/memory.h"

static const char *const name = "exchange/shards.json";

bpt_status bpt_shard_log_write(const bpt_run_folder *run, const bpt_shard_table *shards) {
    bpt_json_writer json = {0};
    bpt_json_open_object(&json, NULL);
    bpt_json_open_array(&json, "begin");
    for (uint32_t s = 0; s < bpt_shard_count(shards); s++)
        bpt_json_put_u64(&json, NULL, bpt_shard_at(shards, s)->begin);
    bpt_json_close_array(&json);
    bpt_json_close_object(&json);
    const bpt_status status = bpt_run_folder_json(run, name, &json);
    bpt_json_free(&json);
    return status;
}

static bpt_status read_begins(const char *path, const bpt_json_doc *doc, size_t n_elements,
                              uint32_t n_shards, uint32_t first_host, uint64_t *begin,
                              bpt_shard_table **shards) {
    const bpt_json *list;
    BPT_TRY(bpt_json_get_array(doc, bpt_json_root(doc), "begin", &list));
    if (bpt_json_size(list) != n_shards || bpt_json_size(bpt_json_root(doc)) != 1)
        return bpt_fail(BPT_EDATA,
                        "%s: \"begin\" is not all there is, one number for each of %u shards", path,
                        n_shards);
    for (uint32_t s = 0; s < n_shards; s++)
        BPT_TRY(bpt_json_get_u64(doc, bpt_json_at(list, s), NULL, 0, n_elements, &begin[s]));
    const bpt_status status = bpt_shard_table_at(n_elements, n_shards, first_host, begin, shards);
    if (status != BPT_EDATA) return status;
    return bpt_fail(BPT_EDATA, "%s: \"begin\": these are no borders of shards", path);
}

bpt_status bpt_shard_log_read(const char *run, size_t n_elements, uint32_t n_shards,
                              uint32_t first_host, bpt_shard_table **shards) {
    enum { MAX_BYTES = 1 << 20 };
    char *path;
    bpt_json_doc *doc = NULL;
    uint64_t *begin = NULL;
    BPT_TRY(bpt_strf(&path, "%s/%s", run, name));
    bpt_status status = bpt_json_load(path, MAX_BYTES, &doc);
    if (status == BPT_OK) status = BPT_NEW("borders of shards", n_shards, &begin);
    if (status == BPT_OK)
        status = read_begins(path, doc, n_elements, n_shards, first_host, begin, shards);
    bpt_free(begin);
    bpt_json_doc_free(doc);
    bpt_free(path);
    return status;
}
