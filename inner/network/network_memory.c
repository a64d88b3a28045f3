/* Where buffers lie, and what all of it comes to. */
#include "base/memory.h"
#include "inner/memory/sharing.h"
#include "inner/network/network_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- which task touches which buffers ---- */

static void add_buffer(bpt_ref where, uint32_t *buffers, size_t *n) {
    if (where.buffer == 0) return;
    for (size_t i = 0; i < *n; i++)
        if (buffers[i] == where.buffer) return;
    buffers[(*n)++] = where.buffer;
}

static bpt_status list_buffers(bpt_builder *b, const bpt_step_task *task, bpt_user *user) {
    const size_t n_places = task->kernel ? BPT_N_SLOTS : task->touches.n;
    uint32_t *buffers;
    BPT_TRY(BPT_BUILDER_NEW(b, n_places, &buffers));
    for (size_t i = 0; i < n_places; i++)
        add_buffer(task->kernel ? bpt_kernel_operand(task->kernel, (bpt_slot)i)
                                : task->touches.refs[i],
                   buffers, &user->n_buffers);
    user->buffers = buffers;
    user->after = task->after.ids;
    user->n_after = task->after.n;
    return BPT_OK;
}

/* Edges to tasks that a graph has not are none in it, so those keep neither edges nor buffers. */
static void filter(bpt_builder *b, unsigned phases, const bpt_user *all, bpt_user *users) {
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bool in = b->tasks[i].phase & phases;
        users[i] = in ? all[i] : (bpt_user){0};
        for (size_t j = 0; j < users[i].n_buffers; j++)
            b->blocks->buffers[users[i].buffers[j]].used = true;
    }
}

static bpt_status note_graphs(bpt_network *net, bpt_sharing *sharing, bpt_user *all,
                              bpt_user *users) {
    bpt_builder *b = &net->builder;
    for (size_t i = 0; i < b->n_tasks; i++) BPT_TRY(list_buffers(b, &b->tasks[i], &all[i]));
    for (int role = 0; role < BPT_N_GRAPHS; role++) {
        const unsigned phases = bpt__batch_phases(net, (bpt_graph_role)role);
        if (!bpt__graph_exists(net, (bpt_graph_role)role) || phases == 0) continue;
        filter(b, phases, all, users);
        BPT_TRY(bpt_sharing_note(sharing, users, b->n_tasks));
    }
    return BPT_OK;
}

/* ---- places ---- */

static bpt_status place(bpt_blocks *blocks, const bpt_sharing *sharing) {
    const size_t n = blocks->n_buffers;
    size_t *bytes = NULL, *offsets = NULL;
    bpt_status status = BPT_NEW("sizes of buffers", n, &bytes);
    if (status == BPT_OK) status = BPT_NEW("places of buffers", n, &offsets);
    if (status == BPT_OK) {
        for (size_t i = 0; i < n; i++) {
            if (!blocks->buffers[i].used) blocks->buffers[i].bytes = 0;
            bytes[i] = bpt_buffer_bytes(&blocks->buffers[i]);
        }
        status = bpt_sharing_place(sharing, bytes, offsets, &blocks->bytes[BPT_BLOCK_ACTIVATIONS]);
    }
    for (size_t i = 0; status == BPT_OK && i < n; i++) blocks->buffers[i].place = offsets[i];
    bpt_free(offsets);
    bpt_free(bytes);
    return status;
}

bpt_status bpt__network_place(bpt_network *net) {
    const size_t n_tasks = net->builder.n_tasks;
    bpt_sharing *sharing = NULL;
    bpt_user *all = NULL, *users = NULL;
    bpt_status status = bpt_sharing_create(net->blocks.n_buffers, &sharing);
    if (status == BPT_OK) status = BPT_NEW("users of memory", n_tasks, &all);
    if (status == BPT_OK) status = BPT_NEW("users of memory", n_tasks, &users);
    if (status == BPT_OK) status = note_graphs(net, sharing, all, users);
    if (status == BPT_OK) status = place(&net->blocks, sharing);
    bpt_free(users);
    bpt_free(all);
    bpt_sharing_free(sharing);
    return status;
}

/* ---- the sum ---- */

static int compare_places(const void *x, const void *y) {
    const bpt_buffer *a = x, *b = y;
    return (a->place > b->place) - (a->place < b->place);
}

/* @param sorted by place, shape [n]
 * @return bytes that buffers up to a kind lie on, shared ones counted once */
static size_t covered(const bpt_buffer *sorted, size_t n, bpt_buffer_kind last) {
    size_t sum = 0, end = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = sorted[i].place > end ? sorted[i].place : end;
        const size_t stop = bpt_size_add(sorted[i].place, bpt_buffer_bytes(&sorted[i]));
        if (sorted[i].kind > last || stop <= begin) continue;
        sum = bpt_size_add(sum, stop - begin);
        end = stop;
    }
    return sum;
}

/* A byte that several kinds share is that of the first of them. */
static bpt_status count_buffers(const bpt_blocks *blocks, bpt_network_memory *m) {
    const size_t n = blocks->n_buffers, all = blocks->bytes[BPT_BLOCK_ACTIVATIONS];
    bpt_buffer *sorted;
    BPT_TRY(BPT_NEW("buffers by place", n, &sorted));
    if (n) memcpy(sorted, blocks->buffers, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_places);
    const size_t values = covered(sorted, n, BPT_BUFFER_VALUES);
    const size_t with_gradients = covered(sorted, n, BPT_BUFFER_GRADIENTS);
    bpt_free(sorted);
    m->activations = values;
    m->activation_gradients = with_gradients - values;
    m->workspaces = all - with_gradients;
    for (size_t i = 0; i < n; i++)
        m->unshared = bpt_size_add(m->unshared, bpt_buffer_bytes(&blocks->buffers[i]));
    return BPT_OK;
}

bpt_status bpt__network_count(bpt_network *net) {
    const size_t *bytes = net->blocks.bytes;
    bpt_network_memory m = {
        .parameters = bpt_size_add(bytes[BPT_BLOCK_WEIGHTS], bytes[BPT_BLOCK_FROZEN]),
        .gradients = bytes[BPT_BLOCK_GRADIENTS],
        .state = bpt_size_add(bytes[BPT_BLOCK_STATE_0], bytes[BPT_BLOCK_STATE_1]),
    };
    BPT_TRY(count_buffers(&net->blocks, &m));
    m.workspaces = bpt_size_add(m.workspaces, bytes[BPT_BLOCK_PARTIALS]);
    m.workspaces = bpt_size_add(m.workspaces, bpt_cpu_scratch_bytes(net->cpu));
    m.total = bpt_cpu_scratch_bytes(net->cpu);
    for (int block = BPT_BLOCK_WEIGHTS; block < BPT_N_BLOCKS; block++)
        m.total = bpt_size_add(m.total, bytes[block]);
    net->memory = m;
    return BPT_OK;
}

bpt_network_memory bpt_network_memory_of(const bpt_network *net) {
    return net->memory;
}
