#include "tools/train/bottleneck.h"

static const struct {
    const char *name, *text;
} rows[BPT_N_LIMITS] = {
    [BPT_LIMIT_WORK] = {"work", "its work: the workers are busy"},
    [BPT_LIMIT_PATH] = {"path", "its critical path"},
    [BPT_LIMIT_IMBALANCE] = {"imbalance", "load imbalance: workers idle between tasks"},
    [BPT_LIMIT_DATA] = {"data", "waiting for data"},
    [BPT_LIMIT_MESSAGES] = {"messages", "waiting for messages of other ranks"},
    [BPT_LIMIT_BETWEEN] = {"between", "what is done between steps"},
};

/* Figures of different clocks may cross by a little. */
static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

bpt_bottleneck bpt_bottleneck_of(const bpt_time_spent *t) {
    const uint64_t bound = t->path > t->work ? t->path : t->work;
    const uint64_t lost[BPT_N_LIMITS] = {
        [BPT_LIMIT_IMBALANCE] = bound ? less(t->steps, bound) : 0,
        [BPT_LIMIT_DATA] = t->data,
        [BPT_LIMIT_MESSAGES] = t->messages,
        [BPT_LIMIT_BETWEEN] = less(t->total, t->data + t->messages + t->steps),
    };
    bpt_bottleneck most = t->path > t->work ? BPT_LIMIT_PATH : BPT_LIMIT_WORK;
    uint64_t least = t->total / 10;
    for (int b = BPT_LIMIT_IMBALANCE; b < BPT_N_LIMITS; b++)
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
