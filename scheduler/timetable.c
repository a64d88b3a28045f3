#include "scheduler/timetable.h"

#include "base/memory.h"

bpt_status bpt_timetable_create(const bpt_graph *g, const bpt_machine *m, bpt_timetable *t) {
    const size_t n = bpt_graph_n_tasks(g);
    bpt_timetable made = {0};
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("timetable begins", n, &made.begin_ns), free);
    BPT_TRY_GOTO(status, BPT_NEW("timetable ends", n, &made.end_ns), free);
    BPT_TRY_GOTO(status, BPT_NEW("timetable workers", n, &made.worker), free);
    BPT_TRY_GOTO(status, BPT_NEW("timetable busy", m->n_workers, &made.busy_ns), free);
    *t = made;
    return BPT_OK;
free:
    bpt_timetable_free(&made);
    return status;
}

void bpt_timetable_free(bpt_timetable *t) {
    bpt_free(t->begin_ns);
    bpt_free(t->end_ns);
    bpt_free(t->worker);
    bpt_free(t->busy_ns);
}
