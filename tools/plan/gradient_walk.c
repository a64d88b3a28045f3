#include "tools/plan/gradient_walk.h"

#include "base/memory.h"
#include "tools/train/exchange/gradient_buckets.h"

#include <assert.h>

static const double forward = 1.0 / 3;

/* @return operations of the layers whose backward pass is over when the gradients from @p begin on
 * are there: those of the layer that has this weight, and of all behind it */
static double operations_from(const bpt_model *m, size_t begin) {
    double sum = 0;
    for (size_t i = m->n_layers; i-- > 0;) {
        const bpt_layer *l = &m->layers[i];
        const size_t last = l->first_segment + l->n_segments;
        const bool before = l->n_segments > 0 && m->segments.items[last - 1].offset < begin;
        if (before) break;
        sum += (double)l->kind->forward_flops(l);
    }
    return sum;
}

bpt_status bpt_gradient_schedule_make(const bpt_model *model, bpt_gradient_schedule *schedule) {
    size_t *begin = NULL;
    const double all = operations_from(model, 0);
    assert(model->n_frozen == 0);
    *schedule = (bpt_gradient_schedule){0};
    bpt_status status = BPT_NEW("buckets", model->segments.n + 1, &begin);
    if (status == BPT_OK) {
        schedule->n = bpt_gradient_buckets_cut(&model->segments, 0, begin);
        status = BPT_NEW("parts of gradients", schedule->n, &schedule->parts);
    }
    for (uint32_t i = 0; status == BPT_OK && i < schedule->n; i++) {
        const uint32_t bucket = schedule->n - 1 - i;
        const double done = all > 0 ? operations_from(model, begin[bucket]) / all : 1;
        schedule->parts[i] = (bpt_gradient_part){
            .bytes = (double)(begin[bucket + 1] - begin[bucket]) * sizeof(float),
            .ready = forward + (1 - forward) * done,
        };
    }
    bpt_free(begin);
    return status;
}

void bpt_gradient_schedule_free(bpt_gradient_schedule *schedule) {
    bpt_free(schedule->parts);
    *schedule = (bpt_gradient_schedule){0};
}

double bpt_gradient_walk(const bpt_gradient_schedule *schedule, double compute_s, double s_per_byte,
                         double latency_s) {
    double over = 0;
    for (uint32_t i = 0; i < schedule->n; i++) {
        const double ready = compute_s * schedule->parts[i].ready;
        over = (ready > over ? ready : over) + schedule->parts[i].bytes * s_per_byte;
    }
    over += latency_s;
    return over > compute_s ? over : compute_s;
}
