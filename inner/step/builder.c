#include "inner/step/builder.h"

#include "base/integers.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

/* ---- the batch ---- */

static int64_t n_chunks_of(int64_t batch) {
    enum {
        /* Of 64 samples, chunks of 8 in place of 16 cost one thread 1 % of a step of lenet and
         * 2.6 % of vgg-small: the weights' gradients are summed over twice as many. */
        SAMPLES = 16,
        MIN_CHUNKS = 4, /* and with fewer samples there are still tasks to balance */
    };
    const int64_t n = bpt_quotient_up(batch, SAMPLES);
    if (n < MIN_CHUNKS) return batch < MIN_CHUNKS ? batch : MIN_CHUNKS;
    return n > BPT_MAX_CHUNKS ? BPT_MAX_CHUNKS : n;
}

/* Samples of a tile: so many that the workers would be done first with one layer of all tiles.
 * No more tiles than chunks unless a worker would have none. */
static int64_t tile_samples_of(int64_t n_chunks, int64_t chunk, int64_t n_workers) {
    enum { BESIDES = 1 }; /* samples that could be computed in what a tile costs by itself */
    int64_t best = chunk, least = INT64_MAX;
    if (n_workers <= n_chunks) return chunk;
    for (int64_t samples = chunk; samples >= 1; samples--) {
        const int64_t n_tiles = n_chunks * bpt_quotient_up(chunk, samples);
        const int64_t longest = (samples + BESIDES) * bpt_quotient_up(n_tiles, n_workers);
        if (n_tiles > BPT_MAX_TILES) break;
        if (longest >= least) continue;
        best = samples;
        least = longest;
    }
    return best;
}

static void cut_chunk(bpt_builder *b, size_t c) {
    const int64_t end = b->chunk_start[c + 1];
    for (int64_t at = b->chunk_start[c]; at < end; at += b->tile_samples)
        b->tile_start[b->n_tiles++] = at;
    b->tile_start[b->n_tiles] = end;
    b->chunk_tile[c + 1] = b->n_tiles;
}

void bpt_builder_cut(bpt_builder *b, int64_t batch, int64_t n_workers) {
    const int64_t n = n_chunks_of(batch);
    b->batch = batch;
    b->n_chunks = (size_t)n;
    b->n_tiles = 0;
    for (int64_t c = 0; c <= n; c++) b->chunk_start[c] = batch * c / n;
    b->tile_samples = tile_samples_of(n, bpt_quotient_up(batch, n), n_workers);
    for (size_t c = 0; c < b->n_chunks; c++) cut_chunk(b, c);
}

int64_t bpt_builder_tile_samples(const bpt_builder *b, size_t t) {
    return b->tile_start[t + 1] - b->tile_start[t];
}

int64_t bpt_builder_chunk_samples(const bpt_builder *b, size_t c) {
    return b->chunk_start[c + 1] - b->chunk_start[c];
}

void bpt_builder_release(bpt_builder *b) {
    for (size_t i = 0; i < b->n_objects; i++) bpt_free(b->objects[i]);
    bpt_free(b->objects);
    bpt_free(b->cuts);
    bpt_free(b->tasks);
    bpt_free(b->weights);
}

bpt_status bpt_builder_object(bpt_builder *b, size_t count, size_t size, void **out) {
    BPT_TRY(BPT_GROW("network objects", b->n_objects + 1, &b->objects, &b->objects_capacity));
    BPT_TRY(bpt_alloc("network object", count, size, out));
    b->objects[b->n_objects++] = *out;
    return BPT_OK;
}

/* ---- tasks ---- */

/* @return @p id alone, as a list */
static bpt_status list_one(bpt_builder *b, uint32_t id, bpt_deps *out) {
    uint32_t *ids;
    BPT_TRY(BPT_BUILDER_NEW(b, 1, &ids));
    ids[0] = id;
    *out = (bpt_deps){ids, 1};
    return BPT_OK;
}

static bpt_status add_task(bpt_builder *b, bpt_step_task task, bpt_deps *done) {
    const uint32_t id = (uint32_t)b->n_tasks;
    if (b->n_tasks >= INT32_MAX) return bpt_fail(BPT_EFULL, "a step has too many tasks");
    BPT_TRY(BPT_GROW("step tasks", b->n_tasks + 1, &b->tasks, &b->tasks_capacity));
    b->tasks[b->n_tasks] = task;
    b->n_tasks++;
    return done ? list_one(b, id, done) : BPT_OK;
}

bpt_status bpt_builder_task(bpt_builder *b, bpt_phase phase, bpt_task_fn fn, void *arg,
                            bpt_task_info info, bpt_places touches, bpt_deps after,
                            bpt_deps *done) {
    bpt_ref *refs;
    BPT_TRY(BPT_BUILDER_NEW(b, touches.n, &refs));
    if (touches.n) memcpy(refs, touches.refs, touches.n * sizeof *refs);
    return add_task(b,
                    (bpt_step_task){.phase = phase,
                                    .fn = fn,
                                    .arg = arg,
                                    .info = info,
                                    .after = after,
                                    .touches = {refs, touches.n}},
                    done);
}

static bpt_status run_kernel(void *arg, unsigned worker) {
    return bpt_kernel_run(arg, worker);
}

bpt_status bpt_builder_kernel(bpt_builder *b, bpt_phase phase, bpt_kernel *kernel,
                              bpt_task_info info, bpt_deps after, bpt_deps *done) {
    return add_task(b,
                    (bpt_step_task){.phase = phase,
                                    .fn = run_kernel,
                                    .arg = kernel,
                                    .info = info,
                                    .after = after,
                                    .kernel = kernel},
                    done);
}

bpt_status bpt_builder_reorder(bpt_builder *b, bpt_phase phase, bpt_task_info info,
                               const bpt_layout *from, bpt_ref from_ref, const bpt_layout *to,
                               bpt_ref to_ref, bpt_deps after, bpt_deps *done) {
    bpt_kernel *k;
    BPT_TRY(bpt_cpu_reorder(b->cpu, from, to, &k));
    bpt_kernel_bind(k, BPT_SLOT_SRC, from_ref);
    bpt_kernel_bind(k, BPT_SLOT_DST, to_ref);
    return bpt_builder_kernel(b, phase, k, info, after, done);
}

bpt_status bpt_deps_join(bpt_builder *b, bpt_deps x, bpt_deps y, bpt_deps *out) {
    if (x.n == 0 || y.n == 0) {
        *out = x.n ? x : y;
        return BPT_OK;
    }
    uint32_t *ids;
    BPT_TRY(BPT_BUILDER_NEW(b, x.n + y.n, &ids));
    memcpy(ids, x.ids, x.n * sizeof *ids);
    memcpy(ids + x.n, y.ids, y.n * sizeof *ids);
    *out = (bpt_deps){ids, x.n + y.n};
    return BPT_OK;
}

bpt_status bpt_deps_all_tiles(bpt_builder *b, const bpt_deps *ready, bpt_deps *out) {
    bpt_deps all = ready[0];
    for (size_t t = 1; t < b->n_tiles; t++) {
        if (ready[t].ids == ready[t - 1].ids) continue; /* tiles that share one list */
        BPT_TRY(bpt_deps_join(b, all, ready[t], &all));
    }
    *out = all;
    return BPT_OK;
}

/* @return whether tile @p t holds some of samples [first, first + n) */
static bool holds(const bpt_builder *b, size_t t, int64_t first, int64_t n) {
    return b->tile_start[t] < first + n && b->tile_start[t + 1] > first;
}

bpt_status bpt_deps_of_samples(bpt_builder *b, const bpt_deps *ready, int64_t first, int64_t n,
                               bpt_deps *out) {
    const bpt_deps *last = NULL;
    *out = (bpt_deps){0};
    for (size_t t = 0; t < b->n_tiles; t++) {
        if (!holds(b, t, first, n) || (last && last->ids == ready[t].ids)) continue;
        last = &ready[t];
        BPT_TRY(bpt_deps_join(b, *out, ready[t], out));
    }
    return BPT_OK;
}

bpt_status bpt_deps_of_chunk(bpt_builder *b, const bpt_deps *ready, size_t c, bpt_deps *out) {
    return bpt_deps_of_samples(b, ready, b->chunk_start[c], bpt_builder_chunk_samples(b, c), out);
}

bpt_status bpt_deps_add_samples(bpt_builder *b, bpt_deps *ready, int64_t first, int64_t n,
                                bpt_deps done) {
    for (size_t t = 0; t < b->n_tiles; t++)
        if (holds(b, t, first, n)) BPT_TRY(bpt_deps_join(b, ready[t], done, &ready[t]));
    return BPT_OK;
}

/* ---- activations ---- */

static bpt_status plain_layout(bpt_builder *b, bpt_shape s, bpt_value_type type, size_t t,
                               const bpt_layout **out) {
    const int64_t dims[] = {bpt_builder_tile_samples(b, t), s.c, s.h, s.w};
    return bpt_layout_plain(b->cpu, type, dims, 4, out);
}

/* Tiles of a plain activation lie one behind the other, so one buffer holds them all. */
static bpt_status reserve_plain(bpt_builder *b, const bpt_activation *a, bpt_buffer_kind kind,
                                bpt_ref *refs) {
    const size_t sample_bytes = bpt_shape_bytes(a->shape, a->type);
    bpt_ref first;
    BPT_TRY(bpt_blocks_buffer(b->blocks, kind, (size_t)b->batch * sample_bytes, &first));
    for (size_t t = 0; t < b->n_tiles; t++)
        refs[t] = bpt_ref_plus(first, (size_t)b->tile_start[t] * sample_bytes);
    return BPT_OK;
}

/* One buffer holds the tiles of a chunk. */
static bpt_status reserve_chunk(bpt_builder *b, const bpt_activation *a, bpt_buffer_kind kind,
                                size_t c, bpt_ref *refs) {
    size_t bytes = 0;
    bpt_ref first;
    for (size_t t = b->chunk_tile[c]; t < b->chunk_tile[c + 1]; t++)
        bytes = bpt_size_add(bytes, bpt_layout_bytes(a->layout[t]));
    BPT_TRY(bpt_blocks_buffer(b->blocks, kind, bytes, &first));
    for (size_t t = b->chunk_tile[c]; t < b->chunk_tile[c + 1]; t++) {
        refs[t] = first;
        first = bpt_ref_plus(first, bpt_layout_bytes(a->layout[t]));
    }
    return BPT_OK;
}

bpt_status bpt_builder_reserve_gradients(bpt_builder *b, const bpt_activation *a, bpt_ref *refs) {
    if (a->plain) return reserve_plain(b, a, BPT_BUFFER_GRADIENTS, refs);
    for (size_t c = 0; c < b->n_chunks; c++)
        BPT_TRY(reserve_chunk(b, a, BPT_BUFFER_GRADIENTS, c, refs));
    return BPT_OK;
}

bpt_status bpt_builder_reserve(bpt_builder *b, bpt_activation *out) {
    out->type = bpt_layout_type(out->layout[0]);
    if (out->plain) {
        BPT_TRY(reserve_plain(b, out, BPT_BUFFER_VALUES, out->value));
        return out->wants_grad ? reserve_plain(b, out, BPT_BUFFER_GRADIENTS, out->grad) : BPT_OK;
    }
    for (size_t c = 0; c < b->n_chunks; c++) {
        BPT_TRY(reserve_chunk(b, out, BPT_BUFFER_VALUES, c, out->value));
        if (out->wants_grad) BPT_TRY(reserve_chunk(b, out, BPT_BUFFER_GRADIENTS, c, out->grad));
    }
    return BPT_OK;
}

bpt_status bpt_builder_alike(bpt_builder *b, const bpt_activation *in, bpt_activation *out) {
    *out = (bpt_activation){
        .shape = in->shape, .type = in->type, .wants_grad = in->wants_grad, .plain = in->plain};
    memcpy(out->layout, in->layout, sizeof out->layout);
    return bpt_builder_reserve(b, out);
}

bpt_status bpt_builder_plain(bpt_builder *b, bpt_shape shape, bpt_value_type type, bool wants_grad,
                             bpt_activation *out) {
    *out = (bpt_activation){.shape = shape, .type = type, .wants_grad = wants_grad, .plain = true};
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(plain_layout(b, shape, type, t, &out->layout[t]));
    return bpt_builder_reserve(b, out);
}

bpt_status bpt_builder_workspace(bpt_builder *b, size_t bytes, bpt_ref *out) {
    return bpt_blocks_buffer(b->blocks, BPT_BUFFER_WORKSPACE, bytes, out);
}

static bool same_layouts(const bpt_builder *b, const bpt_activation *in,
                         const bpt_layout *const *layouts) {
    for (size_t t = 0; t < b->n_tiles; t++)
        if (!bpt_layout_equal(in->layout[t], layouts[t])) return false;
    return true;
}

static bpt_status copy_values(bpt_builder *b, const char *label, const bpt_activation *in,
                              bpt_activation *out) {
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(bpt_builder_reorder(b, BPT_PHASE_FORWARD, (bpt_task_info){"reorder", label},
                                    in->layout[t], in->value[t], out->layout[t], out->value[t],
                                    in->value_ready[t], &out->value_ready[t]));
    return BPT_OK;
}

bpt_status bpt_builder_convert(bpt_builder *b, const char *label, const bpt_activation *in,
                               const bpt_layout *const *layouts, bpt_activation *out) {
    if (same_layouts(b, in, layouts)) {
        *out = *in;
        return BPT_OK;
    }
    *out = (bpt_activation){.shape = in->shape, .wants_grad = in->wants_grad};
    memcpy(out->layout, layouts, b->n_tiles * sizeof *layouts);
    BPT_TRY(bpt_builder_reserve(b, out));
    return copy_values(b, label, in, out);
}

bpt_status bpt_builder_convert_to_plain(bpt_builder *b, const char *label, const bpt_activation *in,
                                        bpt_value_type type, bpt_activation *out) {
    if (in->plain && in->type == type) {
        *out = *in;
        return BPT_OK;
    }
    BPT_TRY(bpt_builder_plain(b, in->shape, type, in->wants_grad, out));
    return copy_values(b, label, in, out);
}

bpt_status bpt_builder_convert_back(bpt_builder *b, const char *label, bpt_activation *in,
                                    const bpt_activation *out) {
    if (!in->wants_grad) return BPT_OK;
    const bool alias = bpt_ref_equal(in->grad[0], out->grad[0]);
    for (size_t t = 0; t < b->n_tiles; t++) {
        if (alias)
            in->grad_ready[t] = out->grad_ready[t];
        else
            BPT_TRY(bpt_builder_reorder(
                b, BPT_PHASE_BACKWARD, (bpt_task_info){"reorder back", label}, out->layout[t],
                out->grad[t], in->layout[t], in->grad[t], out->grad_ready[t], &in->grad_ready[t]));
    }
    return BPT_OK;
}

/* ---- weights ---- */

void bpt_builder_weights(bpt_builder *b, size_t segment, const bpt_layout *layout,
                         size_t n_partials) {
    bpt_weight_plan *w = &b->weights[segment];
    const size_t bytes = bpt_layout_bytes(layout);
    w->layout = layout;
    w->n_partials = n_partials;
    w->master =
        bpt_blocks_reserve(b->blocks, b->frozen ? BPT_BLOCK_FROZEN : BPT_BLOCK_WEIGHTS, bytes);
    if (!bpt_builder_learns(b)) return;
    w->gradient = bpt_blocks_reserve(b->blocks, BPT_BLOCK_GRADIENTS, bytes);
    w->partials.block = BPT_BLOCK_PARTIALS;
    for (size_t i = 1; i < n_partials; i++) {
        const bpt_ref ref = bpt_blocks_reserve(b->blocks, BPT_BLOCK_PARTIALS, bytes);
        if (i == 1) w->partials = ref;
    }
}

bpt_ref bpt_builder_partial(const bpt_builder *b, size_t segment, size_t i) {
    const bpt_weight_plan *w = &b->weights[segment];
    if (i == 0) return w->gradient;
    const size_t bytes = bpt_layout_bytes(w->layout);
    const size_t stride = (bytes + BPT_ALIGNMENT - 1) / BPT_ALIGNMENT * BPT_ALIGNMENT;
    return bpt_ref_plus(w->partials, (i - 1) * stride);
}

bpt_status bpt_builder_weights_written(bpt_builder *b, size_t segment, bpt_deps by) {
    bpt_weight_plan *w = &b->weights[segment];
    return bpt_deps_join(b, w->written, by, &w->written);
}

bpt_status bpt_builder_weights_read(bpt_builder *b, size_t segment, bpt_deps by) {
    bpt_weight_plan *w = &b->weights[segment];
    return bpt_deps_join(b, w->read, by, &w->read);
}
