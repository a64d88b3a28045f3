/** @file inner/step/builder.h
 * Plans a training step: what the build functions of layers are given.
 *
 * A batch of N samples is cut along N, twice. Sums over samples are taken of chunks, which depend
 * on N alone, never on the number of workers, so that every sum has one order. What is computed of
 * each sample by itself is done by tiles: a chunk is one, or several where there are more workers
 * than chunks. Convolutions may be cut further (inner/cuts/cuts.h). Layers add kernels, memory and
 * tasks; which tasks a graph holds follows from their phase.
 *
 * Everything that a builder hands out lives as long as the network. Unless it says otherwise, what
 * plans returns BPT_OK, BPT_ENOMEM, BPT_EFULL (2^31 - 1 tasks are there) or BPT_EBACKEND.
 *
 * Threads: one. */
#ifndef BPT_INNER_BUILDER_H
#define BPT_INNER_BUILDER_H

#include "base/status.h"
#include "inner/cpu/cpu.h"
#include "inner/cuts/cost_table.h"
#include "inner/layers/layer.h"
#include "inner/memory/blocks.h"
#include "scheduler/graph.h"

enum {
    BPT_MAX_CHUNKS = 32,
    BPT_MAX_TILES = 256,
    BPT_WEIGHTS_LAG = 4, /* convolutions by which weights' gradients may be late
                          * (layers/conv_backward.c) */
};

/** When a task runs; bits, so that a graph is a set of phases. */
typedef enum bpt_phase {
    BPT_PHASE_FORWARD = 1,
    BPT_PHASE_LOSS = 2,
    BPT_PHASE_BACKWARD = 4,
    BPT_PHASE_REDUCE = 8,   /* sums the chunks' gradients, for reading */
    BPT_PHASE_UPDATE = 16,  /* sums the chunks' gradients and updates the weights */
    BPT_PHASE_APPLY = 32,   /* updates the weights from gradients that are there */
    BPT_PHASE_EXPORT = 64,  /* native to flat, of what learns */
    BPT_PHASE_IMPORT = 128, /* flat to native, likewise */
    /* What a forward pass does besides, in training and in evaluation. */
    BPT_PHASE_TRAINING = 256,
    BPT_PHASE_INFERENCE = 512,
    BPT_PHASE_BORDER = 1024, /* in no graph: what the caller reads and writes between two runs or
                              * behind one, which is not to be shared until then */
    /* What an update that needs norms wants before BPT_PHASE_APPLY: one of the two. */
    BPT_PHASE_SUM = 2048,     /* sums the chunks' gradients, and the squares of what comes of it */
    BPT_PHASE_SQUARES = 4096, /* sums the squares of gradients that were set */
    BPT_PHASE_EXPORT_FROZEN = 8192,
    BPT_PHASE_IMPORT_FROZEN = 16384,
} bpt_phase;

/** Tasks that must have ended. */
typedef struct bpt_deps {
    const uint32_t *ids; /* shape [n] */
    size_t n;
} bpt_deps;

/** Output of a layer (or the network's input), tile by tile, as one of its readers sees it. Tiles
 * of a chunk lie one behind the other, in one order of a sample's values. */
typedef struct bpt_activation {
    bpt_shape shape;
    bpt_value_type type; /* of values and gradients, as the layouts say */
    bool wants_grad;     /* false for the network's input and what is a copy of it, and for what
                          * layers make that are frozen */
    bool read_only;      /* others need these values: no layer may work in place on them */
    bool grad_read_only; /* likewise the gradients */
    bool plain; /* row-major, and chunks lie one behind the other: [N, C, H, W] as one array */
    const bpt_layout *layout[BPT_MAX_TILES];
    bpt_ref value[BPT_MAX_TILES], grad[BPT_MAX_TILES];
    bpt_deps value_ready[BPT_MAX_TILES], grad_ready[BPT_MAX_TILES];
} bpt_activation;

/** A segment of the weights while the step is planned. */
typedef struct bpt_weight_plan {
    const bpt_segment *segment;
    const bpt_layout *layout; /* of master, gradient and states; NULL before it is chosen */
    const bpt_layout *flat;   /* of the flat vector's part; NULL: row-major over segment->dims */
    bpt_ref master, gradient; /* in their blocks, at the same offset; frozen: no gradient */
    bpt_ref partials;         /* partial gradients 1.. ; number 0 is written to gradient itself */
    size_t n_partials;        /* number 0 included */
    bpt_deps written;         /* tasks that write gradients */
    bpt_deps read;            /* tasks that read the master but may end after those; who reads it
                               * in the forward pass has ended before the loss, and needs no note */
} bpt_weight_plan;

/** What a run of a graph is given; its tasks read it. */
typedef struct bpt_step_values {
    float rate;        /* of learning */
    float denominator; /* the summed gradient is divided by it */
    bpt_draw draw;     /* names the batch's random numbers */
    bool trains;       /* false: an evaluation, which no backward pass follows */
} bpt_step_values;

/** Places in memory; those that are not in a buffer are passed over. */
typedef struct bpt_places {
    const bpt_ref *refs; /* shape [n] */
    size_t n;
} bpt_places;

/** A list of places for one call. */
#define BPT_PLACES(...)                                                                            \
    ((bpt_places){(const bpt_ref[]){__VA_ARGS__},                                                  \
                  sizeof((const bpt_ref[]){__VA_ARGS__}) / sizeof(bpt_ref)})

typedef struct bpt_step_task {
    bpt_phase phase;
    bpt_task_fn fn;
    void *arg;
    bpt_task_info info;
    bpt_deps after;
    const bpt_kernel *kernel; /* that it runs: its operands are what it touches; or NULL */
    bpt_places touches;       /* without a kernel: what it reads or writes */
} bpt_step_task;

/** How a step of a convolution came to be cut. */
typedef struct bpt_cut_note {
    const bpt_layer *layer;
    bpt_conv_step step;
    bpt_conv_problem problem; /* of the largest chunk */
    bpt_cut cut;              /* of that chunk, bpt_cut_normal() */
    bool usual;               /* into tiles, or whole: nobody asked for it */
} bpt_cut_note;

struct bpt_builder {
    bpt_cpu *cpu;
    bpt_blocks *blocks;
    const bpt_step_values *step;
    int64_t batch;
    bpt_value_type type; /* of activations behind a layer that multiplies; other layers keep that of
                          * their first input */
    size_t n_chunks, n_tiles;
    int64_t chunk_start[BPT_MAX_CHUNKS + 1]; /* chunk c holds samples [start[c], start[c+1]) */
    size_t chunk_tile[BPT_MAX_CHUNKS + 1];   /* and tiles [tile[c], tile[c+1]) */
    int64_t tile_start[BPT_MAX_TILES + 1];   /* tile t holds samples [start[t], start[t+1]) */
    int64_t tile_samples;     /* of all tiles, but the last of a chunk may have fewer */
    bpt_weight_plan *weights; /* shape [segments], as the model's table */
    bool forward_only;        /* no gradients, no updates */
    bool frozen;              /* the layer that is planned does not learn, nor any before it, and
                               * is computed in training as in evaluation */
    bpt_deps weights_done[BPT_WEIGHTS_LAG][BPT_MAX_CHUNKS]; /* a ring of convolutions: tasks that
                                                             * compute their weights' gradients */
    size_t n_weights_done;                                  /* convolutions planned backward */
    const bpt_cost_table *costs;                            /* to cut convolutions by, or NULL */
    bpt_cut_note *cuts; /* of all convolutions, shape [n_cuts] */
    size_t n_cuts, cuts_capacity;
    bpt_step_task *tasks; /* shape [n_tasks] */
    size_t n_tasks, tasks_capacity;
    void **objects; /* memory that lives as long as the network, shape [n_objects] */
    size_t n_objects, objects_capacity;
};

/** @return whether the layer that is planned has gradients: of its weights, and of its output */
static inline bool bpt_builder_learns(const bpt_builder *b) {
    return !b->forward_only && !b->frozen;
}

/** Cuts the batch into chunks and tiles.
 * @param n_workers that there should be tiles for, at least 1 */
void bpt_builder_cut(bpt_builder *b, int64_t batch, int64_t n_workers);

/** @return samples of tile @p t */
int64_t bpt_builder_tile_samples(const bpt_builder *b, size_t t);
/** @return samples of chunk @p c */
int64_t bpt_builder_chunk_samples(const bpt_builder *b, size_t c);

/** Releases what the builder handed out (not kernels and blocks). */
void bpt_builder_release(bpt_builder *b);

/** Allocates memory that lives as long as the network, zeroed.
 * @param count,size elements and the bytes of one; through the macro, which takes the size from the
 *                   pointer: BPT_BUILDER_NEW(b, count, &pointer)
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_object(bpt_builder *b, size_t count, size_t size, void **out);
#define BPT_BUILDER_NEW(b, count, out)                                                             \
    bpt_builder_object((b), (count), sizeof **(out), (void **)(out))

/** Adds a task.
 * @param touches all that it reads or writes in buffers, copied: other memory may lie at the same
 *                place while no task that touches a buffer runs
 * @param[out] done the task, as a list of one; may be NULL
 * @return BPT_OK, BPT_ENOMEM, BPT_EFULL */
bpt_status bpt_builder_task(bpt_builder *b, bpt_phase phase, bpt_task_fn fn, void *arg,
                            bpt_task_info info, bpt_places touches, bpt_deps after, bpt_deps *done);

/** Adds a task that runs @p kernel; it touches the kernel's operands, bound before or after. */
bpt_status bpt_builder_kernel(bpt_builder *b, bpt_phase phase, bpt_kernel *kernel,
                              bpt_task_info info, bpt_deps after, bpt_deps *done);

/** Adds a task that copies a tensor to another layout, and to that one's type (bpt_cpu_reorder()).
 * @param from_ref,to_ref where the layouts' values are
 * @param[out] done as above */
bpt_status bpt_builder_reorder(bpt_builder *b, bpt_phase phase, bpt_task_info info,
                               const bpt_layout *from, bpt_ref from_ref, const bpt_layout *to,
                               bpt_ref to_ref, bpt_deps after, bpt_deps *done);

/* Lists of tasks. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_deps_join(bpt_builder *b, bpt_deps x, bpt_deps y, bpt_deps *out);
/** Joins one list per tile, as a task needs that works on the whole batch.
 * @param ready shape [n_tiles] */
bpt_status bpt_deps_all_tiles(bpt_builder *b, const bpt_deps *ready, bpt_deps *out);
/** Joins those of the tiles that hold samples [first, first + n) of the batch. */
bpt_status bpt_deps_of_samples(bpt_builder *b, const bpt_deps *ready, int64_t first, int64_t n,
                               bpt_deps *out);
bpt_status bpt_deps_of_chunk(bpt_builder *b, const bpt_deps *ready, size_t c, bpt_deps *out);
/** Adds @p done to the lists of the tiles that hold samples [first, first + n). */
bpt_status bpt_deps_add_samples(bpt_builder *b, bpt_deps *ready, int64_t first, int64_t n,
                                bpt_deps done);

/** Reserves values and gradients of a plain activation. @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt_builder_plain(bpt_builder *b, bpt_shape shape, bpt_value_type type, bool wants_grad,
                             bpt_activation *out);

/** Makes @p out an activation of the same shape, layouts and wants as @p in, in memory of its own.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_alike(bpt_builder *b, const bpt_activation *in, bpt_activation *out);

/** Reserves memory for gradients in the layouts of @p a.
 * @param[out] refs shape [n_tiles]; as the values lie
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_reserve_gradients(bpt_builder *b, const bpt_activation *a, bpt_ref *refs);

/** Reserves values (and gradients, if @p out wants them) in the layouts of @p out, and says their
 * type. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_reserve(bpt_builder *b, bpt_activation *out);

/** Reserves what tasks need besides. @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_workspace(bpt_builder *b, size_t bytes, bpt_ref *out);

/** Makes @p out the same values as @p in with other layouts: an alias where they are equal, else a
 * copy and its tasks.
 * @param layouts shape [n_tiles], of one type */
bpt_status bpt_builder_convert(bpt_builder *b, const char *label, const bpt_activation *in,
                               const bpt_layout *const *layouts, bpt_activation *out);

/** bpt_builder_convert() to a plain activation. */
bpt_status bpt_builder_convert_to_plain(bpt_builder *b, const char *label, const bpt_activation *in,
                                        bpt_value_type type, bpt_activation *out);

/** Chooses an order in which the channels of activations can be cut and joined by copying: the
 * order of @p in if its blocks of channels allow it, else the plain one.
 * @param channels where cuts are, shape [n_channels]
 * @param[out] lanes 1, 8 or 16 */
bpt_status bpt_builder_choose_lanes(bpt_builder *b, const bpt_activation *in,
                                    const int64_t *channels, size_t n_channels, int64_t *lanes);

/** bpt_builder_convert() to an order of lanes and a type. */
bpt_status bpt_builder_convert_to_lanes(bpt_builder *b, const char *label, const bpt_activation *in,
                                        bpt_value_type type, int64_t lanes, bpt_activation *out);

/** Reserves values and gradients of an activation in an order of lanes. */
bpt_status bpt_builder_reserve_lanes(bpt_builder *b, bpt_shape shape, bpt_value_type type,
                                     int64_t lanes, bool wants_grad, bpt_activation *out);

/** The backward of bpt_builder_convert(): brings the gradients of @p out to @p in. */
bpt_status bpt_builder_convert_back(bpt_builder *b, const char *label, bpt_activation *in,
                                    const bpt_activation *out);

/** A run of bytes in each sample of a tile. */
typedef struct bpt_sample_run {
    bpt_ref first; /* of the first sample */
    size_t stride; /* bytes from a sample to the next */
} bpt_sample_run;

/** Adds a task that copies a run of each sample of tile @p t.
 * @param bytes of a run; @param zeros bytes that are set to 0 behind it
 * @param[out] done the task */
bpt_status bpt_builder_copy_samples(bpt_builder *b, bpt_phase phase, bpt_task_info info, size_t t,
                                    bpt_sample_run from, bpt_sample_run to, size_t bytes,
                                    size_t zeros, bpt_deps after, bpt_deps *done);

/** Adds a task: @p sum becomes the sum of @p parts, in their order.
 * @param parts   shape [n_parts], at least two; lives as long as the network. Only the first may be
 *                @p sum itself
 * @param layout  of each; a sum of several is rounded to its type once
 * @param[out] done the task */
bpt_status bpt_builder_sum(bpt_builder *b, bpt_phase phase, bpt_task_info info,
                           const bpt_ref *parts, size_t n_parts, bpt_ref sum,
                           const bpt_layout *layout, bpt_deps after, bpt_deps *done);

/** Makes what the readers of an activation are given: the same values, with a gradient for each.
 * @param views shape [n_views]. One view is @p a itself; several may not be worked on in place.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_builder_fork(bpt_builder *b, const bpt_activation *a, size_t n_views,
                            bpt_activation *views);

/** The backward of bpt_builder_fork(), once every reader has planned its own: the gradient of
 * @p a is the sum of those of @p views, in their order.
 * @param views shape [n_views] */
bpt_status bpt_builder_join(bpt_builder *b, const char *label, bpt_activation *a,
                            const bpt_activation *views, size_t n_views);

/** Makes the gradient of an input that of an output, where one is the other or one of its addends.
 * @param in        what a layer was given
 * @param converted the same in the layouts of @p out (bpt_builder_convert())
 * @param out       grad and grad_ready are those that @p in shall have; nobody writes there then */
bpt_status bpt_builder_pass_back(bpt_builder *b, const char *label, bpt_activation *in,
                                 bpt_activation *converted, const bpt_activation *out);

/** Chooses the native layout of a segment and reserves its memory.
 * @param n_partials kernels that each write a gradient of their own, at least 1 */
void bpt_builder_weights(bpt_builder *b, size_t segment, const bpt_layout *layout,
                         size_t n_partials);

/** @return where the gradient number @p i of a segment is written */
bpt_ref bpt_builder_partial(const bpt_builder *b, size_t segment, size_t i);

/** Notes tasks that write gradients of a segment, or that read its weights. */
bpt_status bpt_builder_weights_written(bpt_builder *b, size_t segment, bpt_deps by);
bpt_status bpt_builder_weights_read(bpt_builder *b, size_t segment, bpt_deps by);

#endif
