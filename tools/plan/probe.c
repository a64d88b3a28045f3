#include "tools/plan/probe.h"

#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/device_option.h"
#include "tools/plan/probe_parts.h"
#include "tools/train/job/host_place.h"
#include "tools/train/job/rank_threads.h"

#include <inttypes.h>
#include <string.h>

/* What a rank has measured, as all are told; its node has no name. */
typedef struct {
    bpt_node node;
    double latency_s;
} figures;

/* ---- one rank ---- */

static bpt_status open_device(bpt_probe *p) {
    const bpt_host_place place = bpt_host_place_of(p->comm, bpt_comm_size(p->comm));
    const bpt_probe_subject *s = p->subject;
    BPT_TRY(bpt_device_option_open(s->device, s->precision, place, &p->device));
    bpt_device_give_images(p->device); /* as bpt-train does */
    return BPT_OK;
}

static bpt_status open_engine(bpt_probe *p, unsigned threads) {
    const bpt_segments *segments = &p->subject->model->segments;
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    pool.n_workers = threads;
    BPT_TRY(bpt_pool_create(&pool, &p->pool));
    BPT_TRY(BPT_NEW("flat vector", segments->n_elements, &p->flat));
    bpt_segments_initialise(segments, BPT__PROBE_SEED, p->flat);
    bpt_device_pin(p->device, p->flat, segments->n_elements * sizeof *p->flat, &p->pinned);
    return BPT_OK;
}

static void close_all(bpt_probe *p) {
    bpt_device_unpin(&p->pinned);
    bpt_free(p->flat);
    bpt_pool_free(p->pool);
    bpt_device_close(p->device);
}

/* The ranks of a host have its memory in common. */
static double memory_of_rank(unsigned on_host) {
    const size_t bytes = bpt_memory_of_machine();
    return bytes == SIZE_MAX ? 0 : (double)bytes / on_host;
}

/* Memory that the machine does not have would be given out all the same, until it is touched. What
 * a device has is known when its network is made. */
static bpt_status check_memory(const bpt_probe *p, const bpt_node *node) {
    const bpt_probe_subject *s = p->subject;
    bpt_network_memory network;
    if (p->device || !(node->memory_bytes > 0)) return BPT_OK;
    BPT_TRY(bpt_network_plan(s->model, s->batch, bpt_precision_type(s->precision, NULL),
                             s->learning, node->threads, &network));
    if ((double)network.total <= node->memory_bytes) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE,
                                       "a network of %" PRId64
                                       " samples a step needs %.1f GB of memory, %s %.1f GB for "
                                       "each of its ranks",
                                       s->batch, (double)network.total * 1e-9, bpt_memory_bound(),
                                       node->memory_bytes * 1e-9);
    bpt_hint("lower --batch-size, or start fewer ranks there");
    return status;
}

static bpt_status measure(bpt_probe *p, figures *mine) {
    const uint32_t n_ranks = bpt_comm_size(p->comm);
    bpt_node *node = &mine->node;
    unsigned cores, on_host;
    BPT_TRY(bpt_comm_agree(p->comm, open_device(p)));
    BPT_TRY(bpt_rank_threads_choose(p->comm, p->subject->threads, n_ranks,
                                    p->device && !p->device->uses_cores, &node->threads, &cores,
                                    &on_host));
    node->count = 1;
    node->on_device = p->device && !p->device->uses_cores;
    node->memory_bytes = memory_of_rank(on_host);
    BPT_TRY(bpt_comm_agree(p->comm, check_memory(p, node)));
    BPT_TRY(bpt__probe_load(p, node));
    BPT_TRY(bpt_comm_agree(p->comm, open_engine(p, node->threads)));
    BPT_TRY(bpt__probe_steps(p, node));
    return bpt__probe_links(p, node, &mine->latency_s);
}

/* ---- all ranks ---- */

/* Machines may share a name, as ranks of one do. */
static bpt_status name_node(const bpt_comm *comm, uint32_t rank, const char **name) {
    const char *host = bpt_comm_host(comm, rank);
    uint32_t n_before = 0;
    char *made;
    for (uint32_t r = 0; r < rank; r++) n_before += strcmp(bpt_comm_host(comm, r), host) == 0;
    BPT_TRY(n_before ? bpt_strf(&made, "%s.%u", host, n_before) : bpt_strdup(host, &made));
    *name = made;
    return BPT_OK;
}

static bpt_status make_cluster(const bpt_comm *comm, const figures *all, bpt_cluster *cluster) {
    const uint32_t n = bpt_comm_size(comm);
    cluster->latency_s = all[0].latency_s;
    BPT_TRY(BPT_NEW("nodes of a cluster", n, &cluster->nodes));
    cluster->n_nodes = n;
    for (uint32_t r = 0; r < n; r++) cluster->nodes[r] = all[r].node;
    for (uint32_t r = 0; r < n; r++) BPT_TRY(name_node(comm, r, &cluster->nodes[r].name));
    return BPT_OK;
}

static bpt_status check_size(const bpt_comm *comm) {
    const uint32_t n = bpt_comm_size(comm);
    if (n <= BPT_CLUSTER_MOST) return BPT_OK;
    return bpt_fail(BPT_EUSAGE, "there are %u ranks: a cluster has at most %d", n,
                    BPT_CLUSTER_MOST);
}

bpt_status bpt_probe_run(bpt_comm *comm, const bpt_probe_subject *subject, bpt_cluster *cluster) {
    bpt_probe p = {.comm = comm, .subject = subject};
    figures mine = {0}, *all = NULL;
    cluster->nodes = NULL;
    cluster->n_nodes = 0;
    BPT_TRY(check_size(comm));
    bpt_comm_doing(comm, "a measurement");
    bpt_status status = measure(&p, &mine);
    close_all(&p);
    if (status == BPT_OK)
        status = bpt_comm_table(comm, "nodes of all ranks", &mine, sizeof mine, (void **)&all);
    if (status == BPT_OK) status = bpt_comm_agree(comm, make_cluster(comm, all, cluster));
    bpt_free(all);
    bpt_comm_doing(comm, "a plan");
    return status;
}

void bpt_probe_free(bpt_cluster *cluster) {
    for (size_t i = 0; i < cluster->n_nodes; i++) bpt_free((void *)cluster->nodes[i].name);
    bpt_free(cluster->nodes);
    cluster->nodes = NULL;
    cluster->n_nodes = 0;
}
