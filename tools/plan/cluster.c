#include "tools/plan/cluster.h"

uint32_t bpt_cluster_ranks(const bpt_cluster *c) {
    uint32_t n = 0;
    for (size_t i = 0; i < c->n_nodes; i++) n += c->nodes[i].count;
    return n;
}

const bpt_node *bpt_cluster_node_of(const bpt_cluster *c, uint32_t rank) {
    size_t i = 0;
    for (; rank >= c->nodes[i].count; i++) rank -= c->nodes[i].count;
    return &c->nodes[i];
}

double bpt_node_step_s(const bpt_node *node, double samples) {
    const bpt_step_time *s = node->steps;
    const double in_proportion = s[0].seconds * samples / s[0].samples;
    if (node->n_steps == 1) return in_proportion;
    uint32_t i = 1;
    while (i + 1 < node->n_steps && samples > s[i].samples) i++;
    const double per_sample = (s[i].seconds - s[i - 1].seconds) / (s[i].samples - s[i - 1].samples);
    const double on_line = s[i - 1].seconds + (samples - s[i - 1].samples) * per_sample;
    if (samples >= s[0].samples) return on_line;
    return on_line > in_proportion ? on_line : in_proportion;
}
