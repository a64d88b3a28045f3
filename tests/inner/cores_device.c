#include "tests/inner/cores_device.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tests/inner/net_fixture.h"

#include <stdlib.h>
#include <time.h>

typedef struct {
    bpt_device base; /* first */
    bpt_pool *pool;
    cores_device_options options;
} cores_device;

/* What bpt_device_network is here. */
typedef struct {
    const cores_device *device;
    const bpt_model *model;
    int64_t batch;
    bpt_network *net;
    bpt_status status;
    bpt_batch_result result;
    uint64_t updates, deadline_ns;
    bool under_way; /* between begin and end */
} cores_network;

static cores_network *of(bpt_device_network *net) {
    return (cores_network *)net;
}

static bpt_status create(bpt_device *device, const bpt_device_wish *wish, bpt_device_network **net,
                         bpt_network_memory *memory) {
    cores_device *d = (cores_device *)device;
    cores_network *n;
    BPT_TRY(BPT_NEW("network of a test", 1, &n));
    n->device = d;
    n->model = wish->model;
    n->batch = wish->batch;
    const bpt_status status = wish->forward_only
                                  ? bpt_network_create_forward(wish->model, wish->batch,
                                                               wish->activations, d->pool, &n->net)
                                  : bpt_network_create(wish->model, wish->batch, wish->activations,
                                                       wish->learning, d->pool, &n->net);
    if (status == BPT_OK) {
        *memory = bpt_network_memory_of(n->net);
        *net = (bpt_device_network *)n;
    } else {
        bpt_free(n);
    }
    return status;
}

static void free_network(bpt_device_network *net) {
    if (!net) return;
    bpt_network_free(of(net)->net);
    bpt_free(net);
}

static bpt_status compute(cores_network *n, bpt_device_work work, const bpt_device_run *run) {
    n->result = (bpt_batch_result){0};
    bpt_network_set_draw(n->net, run->draw);
    bpt_network_set_second(n->net, run->second, run->parts);
    switch (work) {
    case BPT_DEVICE_TRAIN:
        return bpt_network_train(n->net, run->input, run->labels, run->rate, run->denominator,
                                 &n->result);
    case BPT_DEVICE_GRADIENT:
        return bpt_network_gradient(n->net, run->input, run->labels, run->denominator, &n->result);
    case BPT_DEVICE_APPLY:
        return bpt_network_apply(n->net, run->rate);
    default:
        return bpt_network_evaluate(n->net, run->input, run->labels, &n->result);
    }
}

static bpt_status begin(bpt_device_network *net, bpt_device_work work, const bpt_device_run *run) {
    cores_network *n = of(net);
    const cores_device_options *o = &n->device->options;
    n->deadline_ns = bpt_clock_ns() + (uint64_t)n->batch * o->sample_ns;
    if (run->next && o->n_hints) (*o->n_hints)++;
    if (o->refuses && *o->refuses) return bpt_fail(BPT_EBACKEND, "the device refuses");
    if (n->under_way) return bpt_fail(BPT_EBACKEND, "the run before has not ended");
    n->under_way = true;
    if (work == BPT_DEVICE_TRAIN || work == BPT_DEVICE_APPLY)
        bpt_network_set_updates(n->net, run->updates - 1);
    n->updates = bpt_network_updates(n->net);
    n->status = o->idles ? BPT_OK : compute(n, work, run);
    return BPT_OK;
}

static bpt_status end(bpt_device_network *net, bpt_device_work work, bpt_device_outcome *outcome) {
    cores_network *n = of(net);
    const uint64_t now_ns = bpt_clock_ns();
    (void)work;
    n->under_way = false;
    if (now_ns < n->deadline_ns)
        nanosleep(&(struct timespec){.tv_sec = (time_t)((n->deadline_ns - now_ns) / 1000000000),
                                     .tv_nsec = (long)((n->deadline_ns - now_ns) % 1000000000)},
                  NULL);
    outcome->result = n->result;
    outcome->updated = bpt_network_updates(n->net) != n->updates;
    return n->status;
}

static bpt_status get(bpt_device_network *net, bpt_vector which, size_t first, float *flat) {
    return first > 0 ? bpt_network_get_learned(of(net)->net, which, flat)
                     : bpt_network_get(of(net)->net, which, flat);
}

static bpt_status set(bpt_device_network *net, bpt_vector which, size_t first, const float *flat) {
    return first > 0 ? bpt_network_set_learned(of(net)->net, which, flat)
                     : bpt_network_set(of(net)->net, which, flat);
}

static bpt_status add_gradients(bpt_device_network *net, const float *flat) {
    const size_t n = bpt_model_learned_elements(of(net)->model);
    float *sum = net_floats(n);
    bpt_status status = bpt_network_get_learned(of(net)->net, BPT_VECTOR_GRADIENTS, sum);
    for (size_t i = 0; i < n; i++) sum[i] += flat[i];
    if (status == BPT_OK) status = bpt_network_set_learned(of(net)->net, BPT_VECTOR_GRADIENTS, sum);
    free(sum);
    return status;
}

static bpt_status host_allocate(size_t bytes, void **at) {
    return bpt_alloc("memory of a test", 1, bytes, at);
}

static void visit(const bpt_device_network *net, bpt_device_visit each, void *context) {
    (void)net;
    each(context, "all", "step", 1);
}

static bpt_status write_choices(const bpt_device *device, char **text) {
    (void)device;
    return bpt_strdup("kind: test\nof: [1, 2]\n", text);
}

static bpt_status read_choices(bpt_device *device, const bpt_yaml *doc, const bpt_yaml_node *map,
                               const char **unlike) {
    const char *kind;
    (void)device;
    if (!bpt_yaml_find(map, "kind")) return bpt_yaml_fail(doc, map, "there is no \"kind\"");
    BPT_TRY(bpt_yaml_get_text(doc, bpt_yaml_find(map, "kind"), "kind", &kind));
    *unlike = kind[0] == 't' ? NULL : "another kind";
    return BPT_OK;
}

static uint64_t products_ns(const bpt_device_network *net) {
    (void)net;
    return 17;
}

static void close_device(bpt_device *device) {
    cores_device *d = (cores_device *)device;
    bpt_pool_free(d->pool);
    bpt_free(d);
}

static const bpt_device_kind kind = {
    .name = "test",
    .close = close_device,
    .create = create,
    .free = free_network,
    .begin = begin,
    .end = end,
    .get = get,
    .set = set,
    .add_gradients = add_gradients,
    .host_allocate = host_allocate,
    .host_free = bpt_free,
    .visit = visit,
    .write_choices = write_choices,
    .read_choices = read_choices,
    .products_ns = products_ns,
};

bpt_device *cores_device_open(cores_device_options options) {
    cores_device *d;
    net_assert_ok(BPT_NEW("device of a test", 1, &d));
    d->base = (bpt_device){
        .kind = &kind,
        .name = "test:0 (cores)",
        .bf16 = true,
        .memory_bytes = 1 << 30,
    };
    d->pool = net_pool(1);
    d->options = options;
    return &d->base;
}
