#include "tools/train/job/counters.h"

#include <stddef.h>
#include <string.h>

/* Those that are whole numbers, by their keys. */
static const struct {
    const char *key;
    size_t offset;
} rows[] = {
    {"progress", offsetof(bpt_counters, progress)},
    {"steps", offsetof(bpt_counters, steps)},
    {"samples", offsetof(bpt_counters, samples)},
    {"compute_ns", offsetof(bpt_counters, compute_ns)},
    {"step_ns", offsetof(bpt_counters, step_ns)},
    {"path_ns", offsetof(bpt_counters, path_ns)},
    {"work_ns", offsetof(bpt_counters, work_ns)},
    {"wait_ns", offsetof(bpt_counters, wait_ns)},
    {"data_wait_ns", offsetof(bpt_counters, data_wait_ns)},
    {"eval_ns", offsetof(bpt_counters, eval_ns)},
    {"quality_ns", offsetof(bpt_counters, quality_ns)},
    {"comm_cpu_ns", offsetof(bpt_counters, comm_cpu_ns)},
    {"submissions", offsetof(bpt_counters, submissions)},
    {"payload_sent_bytes", offsetof(bpt_counters, payload_sent_bytes)},
    {"payload_received_bytes", offsetof(bpt_counters, payload_received_bytes)},
    {"header_sent_bytes", offsetof(bpt_counters, header_sent_bytes)},
    {"header_received_bytes", offsetof(bpt_counters, header_received_bytes)},
    {"border_sent_bytes", offsetof(bpt_counters, border_sent_bytes)},
    {"border_received_bytes", offsetof(bpt_counters, border_received_bytes)},
    {"peak_rss_bytes", offsetof(bpt_counters, peak_rss_bytes)},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

void bpt_counters_put(const bpt_counters *c, bpt_json_writer *w) {
    for (size_t i = 0; i < N_ROWS; i++)
        bpt_json_put_u64(w, rows[i].key, *(const uint64_t *)((const char *)c + rows[i].offset));
    bpt_json_put_real(w, "seconds", c->seconds);
}

/* Earlier versions had none of it. */
static bool is_later(const char *key) {
    static const char *const keys[] = {"step_ns",    "path_ns",           "work_ns",
                                       "quality_ns", "border_sent_bytes", "border_received_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

bpt_status bpt_counters_get(const bpt_json_doc *doc, const bpt_json *object, bpt_counters *c) {
    *c = (bpt_counters){0};
    for (size_t i = 0; i < N_ROWS; i++) {
        if (is_later(rows[i].key) && !bpt_json_find(object, rows[i].key)) continue;
        BPT_TRY(bpt_json_get_u64(doc, object, rows[i].key, 0, UINT64_MAX,
                                 (uint64_t *)((char *)c + rows[i].offset)));
    }
    /* What an earlier version did not tell apart counts as work. */
    if (c->step_ns == 0 && c->compute_ns > c->data_wait_ns)
        c->step_ns = c->work_ns = c->compute_ns - c->data_wait_ns;
    return bpt_json_get_real(doc, object, "seconds", &c->seconds);
}
