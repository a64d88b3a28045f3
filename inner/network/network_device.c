/* A network whose steps a device runs whole. What it learns by, counts and was given is kept here,
 * as of any other network. */
#include "base/clock.h"
#include "inner/network/network_private.h"

#include <string.h>

static bpt_device_run describe(const bpt_network *net, bpt_device_work work, const void *input,
                               const int32_t *labels) {
    const bool evaluates = work == BPT_DEVICE_EVALUATE;
    return (bpt_device_run){
        .input = input,
        .labels = labels,
        .second = evaluates ? NULL : net->second.labels,
        .parts = evaluates ? NULL : net->second.parts,
        .next = net->next,
        .draw = net->step.draw,
        .updates = net->updates + bpt_device_updates(work),
        .rate = net->step.rate,
        .denominator = net->step.denominator,
    };
}

/* All parts, once the last of the gradients is there, of a device that does not do it by itself. */
static bpt_status hand_out(bpt_network *net) {
    if (!net->parts.take || net->device->kind->hand_out) return BPT_OK;
    BPT_TRY(bpt_network_get_learned(net, BPT_VECTOR_GRADIENTS, net->parts.flat));
    for (uint32_t p = 0; p < net->parts.n; p++) net->parts.take(net->parts.context, p);
    return BPT_OK;
}

bpt_status bpt__device_run(bpt_network *net, bpt_device_work work, const void *input,
                           const int32_t *labels, bpt_batch_result *result) {
    const bpt_device_run run = describe(net, work, input, labels);
    const uint64_t start_ns = bpt_clock_ns();
    const bpt_device_kind *kind = net->device->kind;
    bpt_device_outcome outcome = {0};
    bpt_status status = kind->begin(net->on_device, work, &run);
    if (status == BPT_OK) status = kind->end(net->on_device, work, &outcome);
    const uint64_t ns = bpt_clock_ns() - start_ns;
    if (work != BPT_DEVICE_APPLY) {
        net->last_run = (bpt_run_stats){.wall_ns = ns, .busy_ns = ns, .n_tasks = 1};
        net->next = NULL; /* both of that batch alone */
        bpt_network_set_second(net, NULL, NULL);
    }
    if (outcome.updated) net->updates = run.updates;
    if (result) *result = outcome.result;
    BPT_TRY(status);
    return work == BPT_DEVICE_GRADIENT ? hand_out(net) : BPT_OK;
}

bpt_status bpt__device_hand_out(bpt_network *net, const bpt_gradient_parts *parts) {
    const bpt_device_kind *kind = net->device->kind;
    if (kind->hand_out) BPT_TRY(kind->hand_out(net->on_device, parts));
    net->parts = *parts;
    net->parts.begin = NULL;
    return BPT_OK;
}

bool bpt_network_takes_images(const bpt_network *net) {
    return net->takes_images;
}

/* ---- times ---- */

typedef struct {
    const bpt_model *model;
    double *seconds; /* of each layer */
    uint64_t all_ns;
} layer_sums;

static void add_layer(void *context, const char *label, const char *kind, uint64_t ns) {
    layer_sums *s = context;
    (void)kind;
    s->all_ns += ns;
    for (size_t i = 0; i < s->model->n_layers; i++)
        if (strcmp(s->model->layers[i].name, label) == 0) s->seconds[i] += (double)ns;
}

/* The step that was measured part by part took longer than others do; only its proportions count.
 */
void bpt__device_layer_times(const bpt_network *net, double *seconds) {
    layer_sums s = {.model = net->model, .seconds = seconds};
    for (size_t i = 0; i < net->model->n_layers; i++) seconds[i] = 0.0;
    net->device->kind->visit(net->on_device, add_layer, &s);
    for (size_t i = 0; i < net->model->n_layers && s.all_ns > 0; i++)
        seconds[i] *= 1e-9 * (double)net->last_run.wall_ns / (double)s.all_ns;
}

typedef struct {
    bpt_visit_times visit;
    void *context;
} visitor;

static void visit_one(void *context, const char *label, const char *kind, uint64_t ns) {
    const visitor *v = context;
    v->visit(v->context, label, kind, 1, ns);
}

void bpt__device_visit_times(const bpt_network *net, bpt_visit_times visit, void *context) {
    visitor v = {visit, context};
    net->device->kind->visit(net->on_device, visit_one, &v);
}
