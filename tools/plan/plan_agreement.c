#include "tools/plan/plan_agreement.h"

#include "base/memory.h"
#include "tools/train/job/agreement.h"

/* Of a rank, as all are told. */
typedef struct {
    uint64_t model, optimizer, reads; /* identity; index; whether there is a dataset */
    int64_t batch, precision;
    double seconds;
} orders;

static uint64_t number_of(const bpt_optimizer *optimizer) {
    size_t i = 0;
    while (bpt_optimizer_at(i) != optimizer) i++;
    return i;
}

static bpt_status take_orders(const bpt_probe_subject *s, orders *mine) {
    *mine = (orders){
        .optimizer = number_of(s->learning.optimizer),
        .reads = s->dataset != NULL,
        .batch = s->batch,
        .precision = (int64_t)s->precision,
        .seconds = s->seconds,
    };
    return bpt_model_identify(s->model, &mine->model);
}

/* @return what differs; NULL: nothing */
static const char *find_unlike(const orders *mine, const orders *first) {
    if (mine->reads != first->reads) return "--data, given or not,";
    if (mine->model != first->model) return "the model or its shape";
    if (mine->batch != first->batch) return "--batch-size";
    if (mine->precision != first->precision) return "--precision";
    if (mine->optimizer != first->optimizer) return "--optimizer";
    return mine->seconds != first->seconds ? "--seconds" : NULL;
}

static bpt_status compare(const orders *mine, const orders *first) {
    const char *unlike = find_unlike(mine, first);
    if (!unlike) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s is not as rank 0 has it", unlike);
    bpt_hint(
        "give all ranks the same model and options; only where --data is, --device and "
        "--threads may differ");
    return status;
}

bpt_status bpt_plan_agree(bpt_comm *comm, const bpt_probe_subject *subject) {
    orders mine, *all;
    BPT_TRY(bpt_agree_on_version(comm));
    BPT_TRY(bpt_comm_agree(comm, take_orders(subject, &mine)));
    BPT_TRY(bpt_comm_table(comm, "orders of ranks", &mine, sizeof mine, (void **)&all));
    const bpt_status status = bpt_comm_agree(comm, compare(&mine, &all[0]));
    bpt_free(all);
    return status;
}
