/** @file inner/cuts/cost_table.h
 * What parts of convolutions take on this machine, and which cut follows from that.
 *
 * A table is filled from measurements (bpt_network_note_costs()) or from a file. Networks of a
 * model that was given one (bpt_model_use_costs()) choose their cuts by it, and by nothing else:
 * not by the number of threads, since a cut may change the last bits of results.
 *
 * Threads: read-only once filled. */
#ifndef BPT_INNER_COST_TABLE_H
#define BPT_INNER_COST_TABLE_H

#include "base/status.h"
#include "base/yaml.h"
#include "inner/cuts/cuts.h"

enum { BPT_COST_WORKERS_MAX = 4096, BPT_COST_MARGIN_MAX = 99 };

/** What one part takes, of unlike ones the largest. */
typedef struct bpt_cost {
    bpt_conv_step step;
    bpt_conv_problem problem; /* of the layer; .n, .bias and .relu do not tell entries apart, but
                               * .winograd does, which may follow from .n */
    bpt_cut cut;              /* .samples: of the part, at least 1; the rest as bpt_cut_normal() */
    uint64_t ns;              /* of one part, at least 1 */
} bpt_cost;

typedef struct bpt_cost_table {
    int64_t workers; /* that cuts are chosen for, 1 to BPT_COST_WORKERS_MAX: a figure of the table,
                      * whatever the number of threads that will run */
    int64_t margin_percent; /* of the time of the whole, 0 to BPT_COST_MARGIN_MAX: by how much a cut
                             * has to be sooner, so that noise of the measurements is no gain */
    bpt_cost *costs;        /* in the order in which they were added; shape [n] */
    size_t n, capacity;
} bpt_cost_table;

/** Adds an entry, or takes its place if there is one of that step, problem and cut.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_cost_table_add(bpt_cost_table *t, const bpt_cost *cost);

/** Adds the entries of another table. Of two of the same step, problem and cut the shorter stays.
 * @return BPT_OK, BPT_ENOMEM (some may be added) */
bpt_status bpt_cost_table_merge(bpt_cost_table *t, const bpt_cost_table *more);

/** Releases what it holds. */
void bpt_cost_table_clear(bpt_cost_table *t);

/** @return nanoseconds of a part, 0 if that is not known. Of several samples with nothing else cut:
 * as many times those of one, where they were not measured themselves */
uint64_t bpt_cost_table_find(const bpt_cost_table *t, bpt_conv_step step,
                             const bpt_conv_problem *problem, bpt_cut cut);

/** Chooses how the steps of a layer are cut. For each step it is, among the cuts that were
 * measured, the one after which the table's number of workers would be done first with the step of
 * all chunks, and of equal ones that with the fewest parts; the given cut where that was not
 * measured, or where no other is sooner by the table's margin. Channels and rows want unlike orders
 * of activations, so that a layer has steps cut along the one or along the other: whatever is the
 * sooner; never along rows by Winograd's algorithm, which would be lost. Backward weights is given
 * no cut that makes more partial gradients than there are chunks, for each has to be added up.
 * @param problem of the layer; .n is not read, .winograd is
 * @param chunks  samples of each chunk, shape [n_chunks]
 * @param backward_data whether the layer has that step
 * @param[in,out] cuts how steps are cut without the table, along samples at most; shape
 *                     [BPT_N_CONV_STEPS] */
void bpt_cost_table_choose(const bpt_cost_table *t, const bpt_conv_problem *problem,
                           const int64_t *chunks, size_t n_chunks, bool backward_data,
                           bpt_cut *cuts);

/** Writes the table as YAML, one entry a line, for bpt_cost_table_read().
 * @param indent spaces before each line
 * @param[out] text caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_cost_table_write(const bpt_cost_table *t, int indent, char **text);

/** Reads a table: a map that bpt_cost_table_write() wrote.
 * @param[out] t caller owns, bpt_cost_table_clear(); set on success only
 * @return BPT_OK, BPT_EUSAGE (names file and line), BPT_ENOMEM */
bpt_status bpt_cost_table_read(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_cost_table *t);

#endif
