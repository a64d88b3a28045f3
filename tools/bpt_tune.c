/* bpt-tune: the fastest choices for training on this machine, into a file. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "inner/optimizers/optimizer.h"
#include "storage/loader/loader.h"
#include "tools/interrupt.h"
#include "tools/precision.h"
#include "tools/program.h"
#include "tools/shaped_model.h"
#include "tools/tune/search.h"
#include "tools/tune/tune_options.h"
#include "tools/tune/tune_report.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PREFIX_SIZE = 256 + 2 }; /* of a host's name and ": " */

/* ---- before anything is measured ---- */

static bpt_status check_free(const char *path, bool force) {
    bool there;
    BPT_TRY(bpt_path_look(path, &there));
    if (there && !force) {
        const bpt_status status = bpt_fail(BPT_EEXIST, "%s is there already", path);
        bpt_hint("name another file, or give --force to replace what bpt-tune has made");
        return status;
    }
    return bpt_tuned_check_place(path);
}

static bpt_status check_out(const char *path, bool force) {
    BPT_TRY(check_free(path, force));
    return bpt_file_try(path);
}

/* What bpt-train has by default: how many state vectors there are depends on it. */
static bpt_learning learning_of(const bpt_tune_options *o) {
    return (bpt_learning){
        .optimizer = bpt_optimizer_at((size_t)o->optimizer),
        .momentum = 0.9,
        .decay = 0.0005,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .eta = 0.001,
    };
}

/* What both sides train on: a loader each, with the most that is tried, or one batch made up. */
static bpt_status images_bytes(const bpt_tune_subject *s, size_t *bytes) {
    const bpt_shape in = s->model->input;
    const size_t values = (size_t)(in.c * in.h * in.w);
    if (!s->dataset)
        return bpt_size_multiply((size_t)s->batch, bpt_shape_bytes(in, BPT_F32), bytes);
    const bpt_loader_options most = {.batch = (uint32_t)s->batch,
                                     .n_threads = BPT_MOST_LOADER_THREADS,
                                     .depth = BPT_MOST_PREFETCH};
    const size_t one = bpt_size_add(bpt_loader_bytes(&most, values),
                                    bpt_loader_decoding_bytes(s->split, most.n_threads, values));
    *bytes = bpt_size_add(one, one);
    return BPT_OK;
}

/* Memory that the machine does not have would be given out all the same, until it is touched. */
static bpt_status check_memory(const bpt_tune_subject *s, unsigned n_threads) {
    const size_t limit = bpt_memory_of_machine();
    bpt_network_memory network;
    BPT_TRY(bpt_network_plan(s->model, s->batch, s->activations, s->learning, n_threads, &network));
    size_t images;
    BPT_TRY(images_bytes(s, &images));
    const size_t both = bpt_size_add(bpt_size_add(network.total, network.total), images);
    if (both <= limit) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "two networks of %" PRId64
                 " samples a step, as are compared, need %.1f GB of memory, %s %.1f GB",
                 s->batch, (double)both * 1e-9, bpt_memory_bound(), (double)limit * 1e-9);
    bpt_hint("lower --batch-size");
    return status;
}

/* A step that no run could make. */
static bpt_status check_batch(const bpt_tune_subject *s) {
    const uint32_t has = s->split->count;
    if (s->batch <= has) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--batch-size %" PRId64 ": a step takes %" PRId64 " samples, split \"%s\" has %u",
                 s->batch, s->batch, s->split->name, has);
    bpt_hint("give --batch-size %u or less", has);
    return status;
}

/* @param n_threads most that are tried */
static bpt_status open_subject(const bpt_tune_options *o, unsigned n_threads, bpt_tune_subject *s) {
    const bpt_shaped_model shaped = {o->model, o->data, o->input_size, o->classes};
    s->batch = o->batch_size;
    s->activations = bpt_precision_type((bpt_precision)o->precision, NULL);
    s->learning = learning_of(o);
    BPT_TRY(bpt_shaped_model_load(&shaped, &s->model));
    if (o->data) {
        BPT_TRY(bpt_shaped_model_open_data(&shaped, o->train_split, &s->dataset, &s->split));
        BPT_TRY(check_batch(s));
    }
    BPT_TRY(check_memory(s, n_threads));
    return o->data ? BPT_OK : bpt_synthetic_make(s->model, s->batch, 1, false, &s->synthetic);
}

static void close_subject(bpt_tune_subject *s) {
    bpt_synthetic_release(&s->synthetic);
    bpt_dataset_close(s->dataset);
    bpt_model_free(s->model);
}

/* @return 0: not known, or of no use, since a control group leaves the time of fewer cores */
static unsigned count_processors(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (bpt_pool_quota_cores() < bpt_pool_bound_cores()) return 0;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 0;
}

/* ---- the file ---- */

/* @param[out] comment free() */
static bpt_status write_comment(const bpt_search *s, const bpt_tuned_key *key, char **comment) {
    size_t size;
    char now[32];
    *comment = NULL;
    FILE *stream = open_memstream(comment, &size);
    if (!stream) return bpt_fail(BPT_ENOMEM, "no memory for the report");
    bpt_clock_utc(now, sizeof now);
    fprintf(stream, "# Made by bpt-tune on %s, for bpt-train --tuned. Measured:\n#\n", now);
    bpt_tune_report(s, key, "# ", stream);
    fputc('\n', stream);
    return fclose(stream) == 0 ? BPT_OK : bpt_fail(BPT_ENOMEM, "no memory for the report");
}

static bpt_status write_file(const char *path, const bpt_search *s, const bpt_tuned_key *key) {
    bpt_tuned tuned = {.key = *key, .choices = s->best};
    char *comment;
    const bpt_task_costs *costs = bpt_search_costs(s);
    if (costs) BPT_TRY(bpt_task_costs_list(costs, &tuned.costs, &tuned.n_costs));
    bpt_status status = write_comment(s, key, &comment);
    if (status == BPT_OK) status = bpt_tuned_write(path, &tuned, comment);
    free(comment);
    bpt_free(tuned.costs);
    return status;
}

/* ---- the work ---- */

static void warn_noise(double noise) {
    if (noise > 0.05)
        bpt_warn(
            "the default differs from itself by %.0f %%: this machine has other work to do, and "
            "smaller gains are not seen; try again when it is idle",
            100.0 * noise);
}

static bpt_status make_key(const bpt_search *s, bpt_tuned_key *key) {
    const bpt_tune_subject *subject = s->subject;
    const bpt_tuned_step step = {
        .model = subject->model,
        .batch = subject->batch,
        .activations = subject->activations,
        .optimizer = subject->learning.optimizer->name,
        .cores = s->limits.cores,
        .dataset = subject->dataset,
    };
    return bpt_tuned_key_make(&step, key);
}

static bpt_status tune(bpt_search *s, const char *path, bool force) {
    bpt_tuned_key key;
    BPT_TRY(make_key(s, &key));
    const bpt_status searched = bpt_search_run(s);
    if (searched == BPT_ENUMERIC)
        bpt_hint(
            "this network does not train by so few samples a step: a larger --batch-size, or "
            "another model");
    BPT_TRY(searched);
    warn_noise(s->noise);
    /* First: it would be measured in vain if the disk were full, or somebody had put something
     * there meanwhile. */
    bpt_tune_report(s, &key, s->prefix, stdout);
    BPT_TRY(check_free(path, force));
    BPT_TRY(write_file(path, s, &key));
    char shown[BPT_ERROR_TEXT_SIZE];
    bpt_text_escape(path, shown, sizeof shown);
    printf("%swritten to %s\n", s->prefix, shown);
    return BPT_OK;
}

/* @param[out] prefix "node1: " where hosts that tune at once are told apart, else "" */
static void name_host(const bpt_tune_options *o, char prefix[PREFIX_SIZE]) {
    char host[PREFIX_SIZE - 2] = "";
    prefix[0] = '\0';
    if (bpt_tuned_path_varies(o->out) && gethostname(host, sizeof host - 1) == 0)
        snprintf(prefix, PREFIX_SIZE, "%s: ", host);
}

static bpt_status run_search(const bpt_tune_options *o, const char *path, uint64_t start_ns) {
    char prefix[PREFIX_SIZE];
    name_host(o, prefix);
    bpt_tune_subject subject = {0};
    bpt_search search = {
        .subject = &subject,
        .prefix = prefix,
        .limits =
            bpt_knob_limits_make(bpt_pool_allowed_cores(), count_processors(), o->data != NULL),
        .budget = {.start_ns = start_ns, .total = o->budget_s},
    };
    BPT_TRY(check_out(path, o->force));
    bpt_status status = open_subject(o, search.limits.processors, &subject);
    if (status == BPT_OK) status = tune(&search, path, o->force);
    bpt_search_release(&search);
    close_subject(&subject);
    return status;
}

static bpt_status run(int argc, char **argv, uint64_t start_ns, bpt_option_set **set) {
    bpt_tune_options options = {0};
    bpt_option_request request;
    char *path;
    BPT_TRY(bpt_options_parse(&bpt_tune_command, argc, argv, &options, &request, set));
    if (request != BPT_REQUEST_RUN) return BPT_OK;
    BPT_TRY(bpt_tune_options_check(&options, *set));
    BPT_TRY(bpt_tuned_path(options.out, &path));
    const bpt_status status = run_search(&options, path, start_ns);
    bpt_free(path);
    return status;
}

int main(int argc, char **argv) {
    const uint64_t start_ns = bpt_clock_ns();
    bpt_option_set *set = NULL;
    bpt_program_begin();
    bpt_interrupt_catch();
    if (argc == 1) {
        bpt_options_help(&bpt_tune_command, stdout);
        return bpt_program_no_arguments("bpt-tune");
    }
    const int exit_status = bpt_program_end("bpt-tune", run(argc, argv, start_ns, &set));
    bpt_option_set_free(set);
    return exit_status;
}
