#include "tools/train/report/bottleneck.h"

static const struct {
    const char *name, *text;
} rows[BPT_N_BOTTLENECKS] = {
    [BPT_BOTTLENECK_WORK] = {"work", "its work: the workers are busy"},
    [BPT_BOTTLENECK_PATH] = {"path", "its critical path"},
    [BPT_BOTTLENECK_IMBALANCE] = {"imbalance", "load imbalance: workers idle between tasks"},
    [BPT_BOTTLENECK_DATA] = {"data", "waiting for data"},
    [BPT_BOTTLENECK_MESSAGES] = {"messages", "waiting for messages of other ranks"},
    [BPT_BOTTLENECK_BETWEEN] = {"between", "what is done between steps"},
};

/* Figures of different clocks may cross by a little. */
static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

uint64_t bpt_time_between_ns(const bpt_time_spent *t) {
    return less(t->total_ns, t->data_ns + t->messages_ns + t->steps_ns);
}

bpt_bottleneck bpt_bottleneck_of(const bpt_time_spent *t) {
    const uint64_t bound = t->path_ns > t->work_ns ? t->path_ns : t->work_ns;
    const uint64_t lost[BPT_N_BOTTLENECKS] = {
        [BPT_BOTTLENECK_IMBALANCE] = bound ? less(t->steps_ns, bound) : 0,
        [BPT_BOTTLENECK_DATA] = t->data_ns,
        [BPT_BOTTLENECK_MESSAGES] = t->messages_ns,
        [BPT_BOTTLENECK_BETWEEN] = bpt_time_between_ns(t),
    };
    bpt_bottleneck most = t->path_ns > t->work_ns ? BPT_BOTTLENECK_PATH : BPT_BOTTLENECK_WORK;
    uint64_t least = t->total_ns / 10;
    for (int b = BPT_BOTTLENECK_IMBALANCE; b < BPT_N_BOTTLENECKS; b++)
        if (lost[b] > least) {
            least = lost[b];
            most = (bpt_bottleneck)b;
        }
    return most;
}

const char *bpt_bottleneck_name(bpt_bottleneck b) {
    return rows[b].name;
}

const char *bpt_bottleneck_text(bpt_bottleneck b) {
    return rows[b].text;
}
