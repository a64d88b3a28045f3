/* The simulator is the loop of run.c with a clock of its own: workers end tasks in the order of
 * time, release successors, and take the next task as the policy says. */
#include "scheduler/simulate.h"

#include "base/memory.h"
#include "scheduler/load.h"
#include "scheduler/pool.h"
#include "scheduler/ready.h"

typedef struct worker {
    bpt__task *queue;   /* heap */
    bpt__task *running; /* NULL: idle */
    bpt__task *kept;    /* runs next, in no queue */
} worker;

typedef struct simulation {
    bpt_graph *g;
    const bpt_machine *m;
    const bpt_policy *policy;
    bpt_timetable *t;
    worker *workers;    /* shape [n_workers] */
    bpt_load *loads;    /* shape [n_workers] */
    uint64_t *given_ns; /* when a task was given to a worker of the kind that runs it; [n_tasks] */
    uint64_t now_ns;
    uint64_t n_placed;
} simulation;

static uint32_t id_of(const simulation *s, const bpt__task *task) {
    return (uint32_t)(task - s->g->tasks);
}

static bpt_policy_view view_of(const simulation *s) {
    return (bpt_policy_view){
        .graph = s->g,
        .machine = s->m,
        .loads = s->loads,
        .ran_on = s->t->worker,
        .now_ns = s->now_ns,
    };
}

static uint64_t cost_on(const simulation *s, const bpt__task *task, unsigned w) {
    return bpt_machine_cost(s->m, s->g, id_of(s, task), bpt_machine_kind(s->m, w));
}

static void enqueue(simulation *s, bpt__task *task, unsigned w) {
    s->given_ns[id_of(s, task)] = s->now_ns;
    bpt__load_give(&s->loads[w], cost_on(s, task, w));
    s->workers[w].queue = bpt__heap_meld(s->workers[w].queue, task);
}

static void place(simulation *s, bpt__task *task, unsigned maker) {
    const bpt_policy_view view = view_of(s);
    const unsigned w = s->policy->place(&view, id_of(s, task), maker);
    if (!s->policy->keys) task->key = UINT64_MAX - s->n_placed;
    s->n_placed++;
    enqueue(s, task, w);
}

static void begin_run(simulation *s) {
    for (size_t i = 0; i < s->g->n_tasks; i++)
        atomic_store_explicit(&s->g->tasks[i].pending, s->g->plans[i].n_before,
                              memory_order_relaxed);
    for (size_t i = 0; i < s->g->n_roots; i++) {
        const unsigned turn = (unsigned)(i % s->m->n_workers);
        if (bpt_policy_places(s->policy, s->m))
            place(s, s->g->roots[i], turn);
        else
            enqueue(s, s->g->roots[i], turn);
    }
}

/* @return the heap of the tasks that the end of @p task makes ready */
static bpt__task *release(simulation *s, const bpt__task *task) {
    bpt_graph *const g = s->g;
    bpt__task *heap = NULL;
    for (uint32_t i = 0; i < task->n_successors; i++) {
        bpt__task *const ready = &g->tasks[g->successors[task->first_successor + i]];
        if (atomic_fetch_sub_explicit(&ready->pending, 1, memory_order_relaxed) != 1) continue;
        if (!s->policy->keys) ready->key = 1;
        heap = bpt__heap_meld(heap, ready);
    }
    return heap;
}

static bpt__task *dequeue(simulation *s, unsigned from) {
    bpt__task *const task = bpt__heap_pop(&s->workers[from].queue);
    bpt__load_take(&s->loads[from], cost_on(s, task, from));
    return task;
}

static void end_task(simulation *s, unsigned w) {
    worker *const me = &s->workers[w];
    bpt__task *heap = release(s, me->running);
    me->running = NULL;
    bpt__load_run(&s->loads[w], 0);
    if (!heap) return;
    if (bpt_policy_places(s->policy, s->m)) {
        while (heap) place(s, bpt__heap_pop(&heap), w);
        return;
    }
    while (heap) enqueue(s, bpt__heap_pop(&heap), w);
    me->kept = dequeue(s, w);
}

static bool may_steal(const simulation *s, unsigned thief, unsigned from) {
    switch (s->policy->stealing) {
    case BPT_STEAL_ANY:
        return true;
    case BPT_STEAL_ALIKE:
        return bpt_machine_kind(s->m, thief) == bpt_machine_kind(s->m, from);
    default:
        return false;
    }
}

/* @return a task whose key is greater than @p best, NULL: there is none to steal */
static bpt__task *steal(simulation *s, unsigned w, uint64_t best) {
    unsigned victim = w;
    for (unsigned i = 1; i < s->m->n_workers; i++) {
        const unsigned other = (w + i) % s->m->n_workers;
        const bpt__task *const first = s->workers[other].queue;
        if (!first || first->key <= best || !may_steal(s, w, other)) continue;
        best = first->key;
        victim = other;
    }
    if (victim == w) return NULL;
    bpt__task *const task = dequeue(s, victim);
    if (bpt_machine_kind(s->m, victim) != bpt_machine_kind(s->m, w))
        s->given_ns[id_of(s, task)] = s->now_ns;
    return task;
}

static bpt__task *take(simulation *s, unsigned w) {
    worker *const me = &s->workers[w];
    bpt__task *const kept = me->kept;
    me->kept = NULL;
    const bpt__task *const own = kept ? kept : me->queue;
    if (!own) return steal(s, w, 0);
    bpt__task *const better = steal(s, w, bpt_patience_least(s->g->patience, s->now_ns, own->key));
    if (better && kept) enqueue(s, kept, w);
    if (better) return better;
    return kept ? kept : dequeue(s, w);
}

static void begin_task(simulation *s, unsigned w, bpt__task *task) {
    const uint32_t id = id_of(s, task);
    const uint64_t cost = cost_on(s, task, w);
    const bpt_policy_view view = view_of(s);
    const uint64_t input = s->given_ns[id] + bpt__transfer(&view, id, w);
    const uint64_t begin = input > s->now_ns ? input : s->now_ns;
    s->t->begin_ns[id] = begin;
    s->t->end_ns[id] = begin + cost;
    s->t->worker[id] = (uint8_t)w;
    s->t->busy_ns[w] += cost;
    s->workers[w].running = task;
    bpt__load_run(&s->loads[w], begin + cost);
}

/* @return whether any worker runs a task */
static bool begin_tasks(simulation *s) {
    bool any = false;
    for (unsigned w = 0; w < s->m->n_workers; w++) {
        if (!s->workers[w].running) {
            bpt__task *const task = take(s, w);
            if (task) begin_task(s, w, task);
        }
        any |= s->workers[w].running != NULL;
    }
    return any;
}

static uint64_t end_of(const simulation *s, unsigned w) {
    const bpt__task *const task = s->workers[w].running;
    return task ? s->t->end_ns[id_of(s, task)] : UINT64_MAX;
}

static void play(simulation *s) {
    begin_run(s);
    while (begin_tasks(s)) {
        s->now_ns = UINT64_MAX;
        for (unsigned w = 0; w < s->m->n_workers; w++)
            if (end_of(s, w) < s->now_ns) s->now_ns = end_of(s, w);
        for (unsigned w = 0; w < s->m->n_workers; w++)
            if (end_of(s, w) == s->now_ns) end_task(s, w);
    }
    s->t->makespan_ns = s->now_ns;
}

bpt_status bpt_simulate(bpt_graph *g, const bpt_machine *m, const bpt_policy *policy,
                        bpt_timetable *t) {
    if (m->n_workers < 1 || m->n_workers > BPT_MAX_WORKERS)
        return bpt_fail(BPT_EUSAGE, "%u workers: allowed are 1 to %d", m->n_workers,
                        BPT_MAX_WORKERS);
    if (m->n_kinds < 1 || m->n_kinds > m->n_workers)
        return bpt_fail(BPT_EUSAGE, "%u kinds of %u workers", m->n_kinds, m->n_workers);
    simulation s = {.g = g, .m = m, .policy = policy, .t = t};
    bpt_status status;
    BPT_TRY(bpt_timetable_create(g, m, t));
    BPT_TRY_GOTO(status, BPT_NEW("simulated workers", m->n_workers, &s.workers), done);
    BPT_TRY_GOTO(status, BPT_NEW("simulated loads", m->n_workers, &s.loads), done);
    BPT_TRY_GOTO(status, BPT_NEW("simulated gifts", g->n_tasks, &s.given_ns), done);
    g->keyed_for = NULL;
    bpt__graph_prepare(g, policy, m);
    play(&s);
    g->keyed_for = NULL; /* the keys are those of other workers */
done:
    bpt_free(s.given_ns);
    bpt_free(s.loads);
    bpt_free(s.workers);
    if (status != BPT_OK) bpt_timetable_free(t);
    return status;
}
