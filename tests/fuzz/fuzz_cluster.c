/* A cluster from any bytes: what is read obeys tools/plan/cluster.h, and comes to the same when it
 * is written and read again. */
#include "tools/plan/cluster_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

/* To as many digits as the file has. */
static void check_near(double x, double as) {
    check(isfinite(x) && x >= 0 && fabs(x - as) <= 1e-5 * as);
}

static void check_node(const bpt_node *n) {
    check(n->name[0] && n->count >= 1 && n->threads >= 1);
    check(n->n_steps >= 1 && n->n_steps <= BPT_NODE_STEPS);
    for (uint32_t i = 0; i < n->n_steps; i++) {
        check(n->steps[i].samples >= 1 && n->steps[i].seconds > 0);
        check(isfinite(n->steps[i].seconds));
        check(i == 0 || n->steps[i].samples > n->steps[i - 1].samples);
        check(i == 0 || n->steps[i].seconds >= n->steps[i - 1].seconds);
    }
    check(isfinite(bpt_node_step_s(n, 1)) && bpt_node_step_s(n, 1) > 0);
}

static void check_same_node(const bpt_node *a, const bpt_node *b) {
    check(strcmp(a->name, b->name) == 0);
    check(a->count == b->count && a->threads == b->threads && a->n_steps == b->n_steps);
    for (uint32_t i = 0; i < a->n_steps; i++) {
        check_near(a->steps[i].samples, b->steps[i].samples);
        check_near(a->steps[i].seconds, b->steps[i].seconds);
    }
    check_near(a->memory_bytes, b->memory_bytes);
    check_near(a->link_bytes_per_s, b->link_bytes_per_s);
    check_near(a->message_s_per_byte, b->message_s_per_byte);
    check_near(a->copy_s, b->copy_s);
    check_near(a->load_s_per_image, b->load_s_per_image);
}

static void check_same_text(const char *a, const char *b) {
    check((a == NULL) == (b == NULL) && (!a || strcmp(a, b) == 0));
}

static void check_same(const bpt_cluster *a, const bpt_cluster *b) {
    check_near(a->latency_s, b->latency_s);
    check_same_text(a->model.name, b->model.name);
    check_same_text(a->model.identity, b->model.identity);
    check_same_text(a->model.precision, b->model.precision);
    check_same_text(a->model.optimizer, b->model.optimizer);
    check(a->n_nodes == b->n_nodes);
    for (size_t i = 0; i < a->n_nodes; i++) check_same_node(&a->nodes[i], &b->nodes[i]);
}

static void write_again(const bpt_cluster *cluster) {
    bpt_cluster_file again;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    check(stream != NULL);
    bpt_cluster_file_put(stream, cluster, "# again\n");
    check(fclose(stream) == 0);
    check(bpt_cluster_file_parse("again", text, size, &again) == BPT_OK);
    check_same(&again.cluster, cluster);
    bpt_cluster_file_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bpt_cluster_file file;
    if (bpt_cluster_file_parse("cluster", (const char *)data, size, &file) == BPT_OK) {
        const bpt_cluster *c = &file.cluster;
        const uint32_t n = bpt_cluster_ranks(c);
        check(n >= 1 && n <= BPT_CLUSTER_MOST);
        check(bpt_cluster_node_of(c, 0) == &c->nodes[0]);
        check(bpt_cluster_node_of(c, n - 1) == &c->nodes[c->n_nodes - 1]);
        for (size_t i = 0; i < c->n_nodes; i++) check_node(&c->nodes[i]);
        write_again(c);
    }
    bpt_cluster_file_free(&file);
    return 0;
}
