#include "tools/train/job/agreement.h"

#include "base/checksum.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/build_name.h"
#include "tools/train/data/dataset_identity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* @param mine   what this rank has, if @p status is BPT_OK
 * @param[out] all what every rank has, shape [n_ranks], to be freed */
static bpt_status gather(bpt_comm *comm, bpt_status status, uint64_t mine, uint64_t **all) {
    *all = NULL;
    if (status == BPT_OK) status = BPT_NEW("inputs of ranks", bpt_comm_size(comm), all);
    BPT_TRY(bpt_comm_agree(comm, status));
    return bpt_comm_allgather(comm, &mine, sizeof mine, *all);
}

/* ---- version ---- */

/* Of all ranks that run another build than rank 0. */
static bpt_status refuse_versions(const bpt_comm *comm, char (*all)[BPT_BUILD_NAME_SIZE],
                                  uint32_t first) {
    char more[256] = "", one[96];
    for (uint32_t r = first + 1; r < bpt_comm_size(comm); r++) {
        if (memcmp(all[r], all[0], BPT_BUILD_NAME_SIZE) == 0) continue;
        snprintf(one, sizeof one, "%u on %s", r, bpt_comm_host(comm, r));
        bpt_list_add(more, sizeof more, one);
    }
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "rank %u on %s runs bpt %s, rank 0 on %s runs %s%s%s", first,
                 bpt_comm_host(comm, first), all[first], bpt_comm_host(comm, 0), all[0],
                 more[0] ? "; others than rank 0 run also ranks " : "", more);
    bpt_hint(
        "install builds of the same sources on all hosts; `which bpt-train` there says what is "
        "run");
    return status;
}

/* All ranks alike, so that none goes on with one that does not look. */
static bpt_status compare_versions(const bpt_comm *comm, char (*all)[BPT_BUILD_NAME_SIZE]) {
    for (uint32_t r = 1; r < bpt_comm_size(comm); r++) {
        all[r][BPT_BUILD_NAME_SIZE - 1] = '\0';
        if (memcmp(all[r], all[0], BPT_BUILD_NAME_SIZE) != 0) return refuse_versions(comm, all, r);
    }
    return BPT_OK;
}

bpt_status bpt_agree_on_version(bpt_comm *comm) {
    char(*all)[BPT_BUILD_NAME_SIZE];
    BPT_TRY(bpt_comm_table(comm, "versions of ranks", bpt_build_name, sizeof bpt_build_name,
                           (void **)&all));
    /* Agreed on, too: one of an older build may not have looked. */
    const bpt_status status = bpt_comm_agree(comm, compare_versions(comm, all));
    bpt_free(all);
    return status;
}

/* ---- options ---- */

/* May differ from host to host. */
static const char *const of_hosts[] = {
    "data",    "scratch", "stage",          "tuned",    "device",    "precision",
    "threads", "policy",  "loader-threads", "prefetch", "log-level", "log-interval",
};

/* Options as they are printed, one a line: "name: value". */
typedef struct {
    char *text;
    uint64_t size; /* with the 0 at its end */
} options_text;

static bool may_differ(const char *line) {
    const size_t length = strcspn(line, ":");
    for (size_t i = 0; i < sizeof of_hosts / sizeof *of_hosts; i++)
        if (strlen(of_hosts[i]) == length && strncmp(line, of_hosts[i], length) == 0) return true;
    return false;
}

/* @return the line behind; NULL behind the last */
static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

static const char *next_shared(const char *line) {
    while (line && may_differ(line)) line = next_line(line);
    return line;
}

static bpt_status print_options(const bpt_train_options *options, options_text *out) {
    size_t size = 0;
    FILE *memory = open_memstream(&out->text, &size);
    if (!memory) return bpt_fail(BPT_ENOMEM, "no memory for the options");
    bpt_options_print(&bpt_train_command, options, memory);
    const bool written = fclose(memory) == 0;
    out->size = size + 1;
    return written ? BPT_OK : bpt_fail(BPT_ENOMEM, "no memory for the options");
}

/* "update: agwu" becomes "--update agwu"; one that is not there, "no --update". */
static void show_option(const char *line, const char *name_of, char *out, size_t size) {
    const int name = (int)strcspn(line ? line : name_of, ":");
    if (line)
        snprintf(out, size, "--%.*s%.*s", name, line, (int)strcspn(line, "\n") - name - 1,
                 line + name + 1);
    else
        snprintf(out, size, "no --%.*s", name, name_of);
}

static bool has_name(const char *line, const char *other) {
    const size_t length = strcspn(line, ":");
    return strncmp(line, other, length + 1) == 0;
}

/* @return the line with the same name, NULL if there is none */
static const char *find_name(const char *text, const char *like) {
    for (const char *line = text; line; line = next_line(line))
        if (has_name(line, like)) return line;
    return NULL;
}

static bool is_same(const char *a, const char *b) {
    const size_t length = strcspn(a, "\n");
    return strncmp(a, b, length + 1) == 0;
}

static bpt_status differs(const char *mine, const char *theirs, const bpt_comm *comm) {
    char here[160], there[160];
    show_option(mine, theirs, here, sizeof here);
    show_option(theirs, mine, there, sizeof there);
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "rank %u on %s has %s, rank 0 on %s has %s", bpt_comm_rank(comm),
                 bpt_comm_host(comm, bpt_comm_rank(comm)), here, bpt_comm_host(comm, 0), there);
    bpt_hint(
        "give all ranks the same options; only --data, --scratch, --stage, --tuned, --threads and "
        "the like may differ");
    return status;
}

static bpt_status compare(const char *mine, const char *theirs, const bpt_comm *comm) {
    for (const char *line = next_shared(mine); line; line = next_shared(next_line(line))) {
        const char *other = find_name(theirs, line);
        if (!other || !is_same(line, other)) return differs(line, other, comm);
    }
    for (const char *line = next_shared(theirs); line; line = next_shared(next_line(line)))
        if (!find_name(mine, line)) return differs(NULL, line, comm);
    return BPT_OK;
}

bpt_status bpt_agree_on_options(const bpt_train_options *options, bpt_comm *comm) {
    if (bpt_comm_size(comm) == 1) return BPT_OK;
    options_text mine = {0};
    char *theirs = NULL;
    bpt_status status = bpt_comm_agree(comm, print_options(options, &mine));
    uint64_t size = mine.size; /* of rank 0's, once it is broadcast */
    if (status == BPT_OK) status = bpt_comm_broadcast(comm, 0, &size, sizeof size);
    if (status == BPT_OK) {
        status = bpt_alloc("options", size, 1, (void **)&theirs);
        if (status == BPT_OK && bpt_comm_rank(comm) == 0) memcpy(theirs, mine.text, size);
        status = bpt_comm_agree(comm, status);
    }
    if (status == BPT_OK) status = bpt_comm_broadcast(comm, 0, theirs, size);
    if (status == BPT_OK) status = bpt_comm_agree(comm, compare(mine.text, theirs, comm));
    bpt_free(theirs);
    free(mine.text); /* the C library's own memory */
    return status;
}

/* ---- dataset and model ---- */

static bpt_status another(const bpt_job *job, const char *what, const char *path, uint32_t other,
                          const char *hint) {
    const bpt_status status = bpt_fail(
        BPT_EDATA, "the %s %s of rank %u on %s is not that of rank %u on %s", what, path, job->rank,
        bpt_comm_host(job->comm, job->rank), other, bpt_comm_host(job->comm, other));
    bpt_hint("%s", hint);
    return status;
}

static bpt_status compare_datasets(bpt_job *job, const uint64_t *all) {
    uint32_t first = 0; /* rank that has opened one */
    while (all[first] == 0 && first + 1 < job->n_ranks) first++;
    job->dataset_identity = all[first] >> 11;
    if (all[job->rank] == 0 || all[job->rank] == all[first]) return BPT_OK;
    return another(job, "dataset", job->options->data, first,
                   "give every host the same one (bpt-ingest info shows what it holds), or rank "
                   "0's to all by --data-mode scatter");
}

bpt_status bpt_agree_on_dataset(bpt_job *job) {
    uint64_t mine = 0, *all;
    bpt_status status = BPT_OK;
    if (job->dataset) status = bpt_dataset_identify(bpt_dataset_describe(job->dataset), &mine);
    status = gather(job->comm, status, mine, &all);
    if (status == BPT_OK) status = bpt_comm_agree(job->comm, compare_datasets(job, all));
    bpt_free(all);
    return status;
}

static bpt_status compare_models(bpt_job *job, const uint64_t *all) {
    job->model_identity = all[0] >> 11;
    if (all[job->rank] == all[0]) return BPT_OK;
    return another(job, "model", job->options->model, 0, "give every host the same file");
}

bpt_status bpt_agree_on_model(bpt_job *job) {
    uint64_t mine = 0, *all;
    bpt_status status = bpt_model_identify(job->model, &mine);
    status = gather(job->comm, status, mine, &all);
    if (status == BPT_OK) status = bpt_comm_agree(job->comm, compare_models(job, all));
    bpt_free(all);
    return status;
}

/* ---- checkpoint ---- */

/* Its list of files has the checksums of all others, so that of the list stands for the whole. */
static bpt_status identify_checkpoint(const char *checkpoint, uint64_t *identity) {
    char *done;
    uint64_t bytes;
    BPT_TRY(bpt_strf(&done, "%s/DONE", checkpoint));
    const bpt_status status = bpt_checksum_file(done, &bytes, identity);
    bpt_free(done);
    return status;
}

static bpt_status compare_checkpoints(const bpt_job *job, const char *path, const uint64_t *all) {
    if (all[job->rank] == all[0]) return BPT_OK;
    return another(job, "checkpoint", path, 0,
                   "give --resume a folder that all hosts share, or the same copy to every host");
}

bpt_status bpt_agree_on_checkpoint(const bpt_job *job, const char *checkpoint) {
    uint64_t mine = 0, *all;
    bpt_status status = identify_checkpoint(checkpoint, &mine);
    status = gather(job->comm, status, mine, &all);
    if (status == BPT_OK)
        status = bpt_comm_agree(job->comm, compare_checkpoints(job, checkpoint, all));
    bpt_free(all);
    return status;
}
