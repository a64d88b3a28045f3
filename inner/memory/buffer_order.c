#include "inner/memory/buffer_order.h"

#include "base/memory.h"

#include <string.h>

/* Buffers are taken some at a time, as many as have GROUP_BITS last uses together, or one that has
 * more: a last use is a bit, and bits flow along the edges. Where all bits of a buffer have reached
 * every first use of another, it is over before that one begins. */
enum { WORD_BITS = 64, GROUP_BITS = 512 };
#define NO_BIT  SIZE_MAX
#define NO_TASK UINT32_MAX

/* How many bits of a group have got somewhere. Often none or all: words are for those between. */
typedef uint8_t reach;
enum { NONE, SOME, ALL };

/* Of a task that uses a buffer: whether another that uses it waits for this one, or this one for
 * another. What other uses come behind or before says nothing new. */
enum { USED_AFTER = 1, USED_BEFORE = 2 };

typedef struct {
    const bpt_user *users; /* shape [n_users] */
    size_t n_users, n;     /* n: buffers */
    bool *matters;         /* whether it or one behind it uses a buffer; shape [n_users] */
    size_t *first_use;     /* of each task in `uses`, as in its list of buffers; shape [n_users] */
    uint8_t *uses;         /* flags of those above */
    uint32_t *first_task;  /* that uses a buffer, or NO_TASK; shape [n] */
    size_t *n_last;        /* last uses of a buffer; shape [n] */
    uint32_t *members;     /* buffers as they are taken; shape [n] */
    uint32_t *parent;      /* while those are put in order; shape [n] */
    size_t n_words;        /* of the largest group */
    uint64_t *gathered;    /* what has reached a task before it begins; shape [n_words] */
    reach *task;           /* and with its own bits; shape [n_users] */
    uint64_t *task_bits;   /* shape [n_users, n_words] */
    reach *buffer;         /* what has reached all first uses of a buffer; shape [n] */
    uint64_t *buffer_bits; /* shape [n, n_words] */
    size_t *next_bit;      /* of a buffer's next last use if it is of the group, else NO_BIT; [n] */
} graph;

static void set_bit(uint64_t *words, size_t i) {
    words[i / WORD_BITS] |= (uint64_t)1 << i % WORD_BITS;
}

static bool all_set(const uint64_t *words, size_t first, size_t n) {
    for (size_t i = first, end = first + n, next; i < end; i = next) {
        const uint64_t from_i = UINT64_MAX << i % WORD_BITS;
        next = i - i % WORD_BITS + WORD_BITS;
        const uint64_t to_end = next > end ? UINT64_MAX >> (next - end) : UINT64_MAX;
        if (~words[i / WORD_BITS] & from_i & to_end) return false;
    }
    return true;
}

/* ---- uses ---- */

static void flag_common(const graph *g, size_t before, size_t after) {
    const bpt_user *x = &g->users[before], *y = &g->users[after];
    for (size_t i = 0; i < x->n_buffers; i++)
        for (size_t j = 0; j < y->n_buffers; j++)
            if (x->buffers[i] == y->buffers[j]) {
                g->uses[g->first_use[before] + i] |= USED_AFTER;
                g->uses[g->first_use[after] + j] |= USED_BEFORE;
            }
}

static void list_uses(const graph *g) {
    for (size_t b = 0; b < g->n; b++) g->first_task[b] = NO_TASK;
    for (size_t t = g->n_users; t-- > 0;) {
        const bpt_user *u = &g->users[t];
        g->matters[t] |= u->n_buffers > 0;
        if (!g->matters[t]) continue;
        for (size_t i = 0; i < u->n_after; i++) {
            g->matters[u->after[i]] = true;
            flag_common(g, u->after[i], t);
        }
        for (size_t i = 0; i < u->n_buffers; i++) {
            g->first_task[u->buffers[i]] = (uint32_t)t;
            g->n_last[u->buffers[i]] += !(g->uses[g->first_use[t] + i] & USED_AFTER);
        }
    }
}

static uint32_t find_root(uint32_t *parent, uint32_t b) {
    while (parent[b] != b) b = parent[b] = parent[parent[b]];
    return b;
}

/* Buffers that tasks connect come together: of samples that nothing joins before the end, what
 * belongs to the same ones, whose bits then reach few tasks of others. */
static void list_members(const graph *g) {
    uint32_t *parent = g->parent;
    size_t *begin = g->next_bit; /* of each root's members: there are no bits yet */
    for (uint32_t b = 0; b < g->n; b++) parent[b] = b;
    for (size_t t = 0; t < g->n_users; t++)
        for (size_t i = 1; i < g->users[t].n_buffers; i++) {
            const uint32_t x = find_root(parent, g->users[t].buffers[0]);
            const uint32_t y = find_root(parent, g->users[t].buffers[i]);
            parent[x < y ? y : x] = x < y ? x : y; /* the root is the first of them */
        }
    for (uint32_t b = 0; b < g->n; b++) begin[find_root(parent, b)]++;
    for (size_t b = 0, sum = 0; b < g->n; b++) {
        const size_t count = begin[b];
        begin[b] = sum;
        sum += count;
    }
    for (uint32_t b = 0; b < g->n; b++) g->members[begin[find_root(parent, b)]++] = b;
}

/* ---- a group of buffers ---- */

typedef struct {
    const uint32_t *members;
    size_t n, n_bits, n_words;
    uint32_t first_task; /* that uses one of them */
} group;

static group group_from(const graph *g, size_t first) {
    group a = {.members = g->members + first, .first_task = NO_TASK};
    while (first + a.n < g->n) {
        const uint32_t b = a.members[a.n];
        if (a.n > 0 && a.n_bits + g->n_last[b] > GROUP_BITS) break;
        if (g->first_task[b] < a.first_task) a.first_task = g->first_task[b];
        a.n_bits += g->n_last[b];
        a.n++;
    }
    a.n_words = (a.n_bits + WORD_BITS - 1) / WORD_BITS;
    return a;
}

static void begin_group(const graph *g, const group *a) {
    memset(g->task, NONE, a->first_task * sizeof *g->task);
    for (size_t b = 0; b < g->n; b++) {
        const bool reached = g->first_task[b] != NO_TASK && g->first_task[b] >= a->first_task;
        g->buffer[b] = reached ? ALL : NONE;
        g->next_bit[b] = NO_BIT;
    }
    for (size_t m = 0, bit = 0; m < a->n; m++) {
        g->next_bit[a->members[m]] = bit;
        bit += g->n_last[a->members[m]];
    }
}

/* @param[out] bits what has reached a task before it begins, if that is some: shape [n_words] */
static reach gather(const graph *g, const group *a, const bpt_user *u, uint64_t *bits) {
    reach all = NONE;
    for (size_t i = 0; i < u->n_after; i++) {
        const reach one = g->task[u->after[i]];
        if (one == ALL) return ALL;
        if (one == NONE) continue;
        const uint64_t *from = g->task_bits + u->after[i] * g->n_words;
        if (all == NONE)
            memcpy(bits, from, a->n_words * sizeof *bits);
        else
            for (size_t w = 0; w < a->n_words; w++) bits[w] |= from[w];
        all = SOME;
    }
    return all == SOME && all_set(bits, 0, a->n_bits) ? ALL : all;
}

/* A buffer has a first use that no more has reached. */
static void narrow(const graph *g, const group *a, size_t b, reach one, const uint64_t *from) {
    uint64_t *bits = g->buffer_bits + b * g->n_words;
    if (one == ALL || g->buffer[b] == NONE) return;
    if (one == NONE) {
        g->buffer[b] = NONE;
    } else if (g->buffer[b] == ALL) {
        g->buffer[b] = SOME;
        memcpy(bits, from, a->n_words * sizeof *bits);
    } else {
        for (size_t w = 0; w < a->n_words; w++) bits[w] &= from[w];
    }
}

/* @param before what has reached the task before it begins: `bits`, if that is some
 * @return with its own bits */
static reach add_own(const graph *g, const group *a, size_t t, reach before, const uint64_t *bits) {
    const bpt_user *u = &g->users[t];
    uint64_t *mine = g->task_bits + t * g->n_words;
    reach now = before;
    if (before == SOME) memcpy(mine, bits, a->n_words * sizeof *mine);
    for (size_t i = 0; i < u->n_buffers; i++) {
        if (g->next_bit[u->buffers[i]] == NO_BIT) continue;
        if (g->uses[g->first_use[t] + i] & USED_AFTER) continue;
        if (now == NONE) memset(mine, 0, a->n_words * sizeof *mine);
        now = SOME; /* not all: this one was missing */
        set_bit(mine, g->next_bit[u->buffers[i]]++);
    }
    return now == SOME && all_set(mine, 0, a->n_bits) ? ALL : now;
}

/* Where many tasks wait for the same many, one after the other has the same list. */
static void flow(const graph *g, const group *a) {
    const bpt_user nobody = {0}, *last = &nobody;
    reach before = NONE;
    for (size_t t = a->first_task; t < g->n_users; t++) {
        const bpt_user *u = &g->users[t];
        if (!g->matters[t]) continue;
        if (u->after != last->after || u->n_after != last->n_after)
            before = gather(g, a, u, g->gathered);
        last = u;
        for (size_t i = 0; i < u->n_buffers; i++)
            if (!(g->uses[g->first_use[t] + i] & USED_BEFORE))
                narrow(g, a, u->buffers[i], before, g->gathered);
        g->task[t] = add_own(g, a, t, before, g->gathered);
    }
}

static void look_at(const graph *g, const group *a, const bpt_buffer_pairs *ordered) {
    if (a->first_task == NO_TASK) return; /* no task uses one of them */
    begin_group(g, a);
    flow(g, a);
    for (size_t b = 0; b < g->n; b++) {
        if (g->buffer[b] == NONE) continue;
        const uint64_t *bits = g->buffer_bits + b * g->n_words;
        for (size_t m = 0, bit = 0; m < a->n; bit += g->n_last[a->members[m++]])
            if (g->buffer[b] == ALL || all_set(bits, bit, g->n_last[a->members[m]])) {
                bpt_buffer_pairs_set(ordered, a->members[m], b);
                bpt_buffer_pairs_set(ordered, b, a->members[m]);
            }
    }
}

/* ---- memory ---- */

static bpt_status allocate_uses(graph *g) {
    size_t total = 0;
    BPT_TRY(BPT_NEW("uses of buffers", g->n_users, &g->first_use));
    for (size_t t = 0; t < g->n_users; t++) {
        g->first_use[t] = total;
        total += g->users[t].n_buffers;
    }
    BPT_TRY(BPT_NEW("uses of buffers", total, &g->uses));
    BPT_TRY(BPT_NEW("tasks before uses", g->n_users, &g->matters));
    BPT_TRY(BPT_NEW("first uses of buffers", g->n, &g->first_task));
    return BPT_NEW("last uses of buffers", g->n, &g->n_last);
}

static bpt_status allocate_groups(graph *g) {
    size_t largest = GROUP_BITS;
    for (size_t b = 0; b < g->n; b++)
        if (g->n_last[b] > largest) largest = g->n_last[b];
    g->n_words = (largest + WORD_BITS - 1) / WORD_BITS;
    BPT_TRY(BPT_NEW("groups of buffers", g->n, &g->members));
    BPT_TRY(BPT_NEW("groups of buffers", g->n, &g->parent));
    BPT_TRY(BPT_NEW("uses that are over", g->n_words, &g->gathered));
    BPT_TRY(BPT_NEW("uses that are over", g->n_users, &g->task));
    BPT_TRY(BPT_NEW("uses that are over", g->n, &g->buffer));
    BPT_TRY(BPT_NEW("uses that are over", g->n, &g->next_bit));
    BPT_TRY(bpt_alloc_unset("uses that are over", g->n_users, g->n_words * sizeof *g->task_bits,
                            (void **)&g->task_bits));
    return bpt_alloc_unset("uses that are over", g->n, g->n_words * sizeof *g->buffer_bits,
                           (void **)&g->buffer_bits);
}

static void release(const graph *g) {
    void *const parts[] = {g->buffer_bits, g->task_bits, g->next_bit, g->buffer, g->task,
                           g->gathered,    g->parent,    g->members,  g->n_last, g->first_task,
                           g->matters,     g->uses,      g->first_use};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) bpt_free(parts[i]);
}

bpt_status bpt_buffer_order(const bpt_user *users, size_t n_users,
                            const bpt_buffer_pairs *ordered) {
    graph g = {.users = users, .n_users = n_users, .n = ordered->n};
    bpt_status status = allocate_uses(&g);
    if (status == BPT_OK) {
        list_uses(&g);
        status = allocate_groups(&g);
    }
    if (status == BPT_OK) {
        list_members(&g);
        for (size_t first = 0; first < g.n;) {
            const group a = group_from(&g, first);
            look_at(&g, &a, ordered);
            first += a.n;
        }
    }
    release(&g);
    return status;
}

/* ---- pairs ---- */

bpt_status bpt_buffer_pairs_create(size_t n_buffers, bpt_buffer_pairs *pairs) {
    const size_t stride = (n_buffers + WORD_BITS - 1) / WORD_BITS;
    size_t n_words;
    *pairs = (bpt_buffer_pairs){.n = n_buffers, .stride = stride};
    BPT_TRY(bpt_size_multiply(n_buffers, stride, &n_words));
    return BPT_NEW("pairs of buffers", n_words, &pairs->bits);
}

void bpt_buffer_pairs_free(bpt_buffer_pairs *pairs) {
    bpt_free(pairs->bits);
    pairs->bits = NULL;
}
