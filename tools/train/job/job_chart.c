/* The picture of a job's run: when it is drawn. */
#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/watch.h"
#include "tools/train/job/job_parts.h"

bpt_status bpt__job_open_chart(bpt_job *job) {
    char *metrics = NULL, *picture = NULL;
    bpt_status status = bpt_run_folder_entry(job->run, "metrics.jsonl", &metrics);
    if (status == BPT_OK) status = bpt_run_folder_entry(job->run, "chart.svg", &picture);
    if (status == BPT_OK) status = bpt_chart_open(metrics, picture, &job->chart);
    bpt_free(picture);
    bpt_free(metrics);
    return status;
}

void bpt_job_draw(bpt_job *job, bool last) {
    if (!job->chart || (!last && !bpt_chart_is_due(job->chart, bpt_clock_ns()))) return;
    bpt_comm_operation_begin(job->comm, "the run folder");
    bpt_chart_draw(job->chart);
    bpt_comm_operation_end(job->comm);
}
