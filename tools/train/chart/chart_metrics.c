#include "tools/train/chart/chart_metrics.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- fields of an event ---- */

typedef struct {
    const bpt_json_doc *doc;
    const bpt_json *object;
} event;

/* No quantity of a training is as large, and one as small is 0: sums, differences and quotients of
 * those that are neither do not overflow. */
static bool get_real(const event *e, const char *key, double *value) {
    const double most = 1e100;
    double v;
    if (bpt_json_get_real(e->doc, e->object, key, &v) != BPT_OK || !(fabs(v) <= most)) return false;
    *value = fabs(v) < 1 / most ? 0 : v;
    return true;
}

static uint64_t get_count(const event *e, const char *key) {
    uint64_t count;
    return bpt_json_get_u64(e->doc, e->object, key, 0, INT64_MAX, &count) == BPT_OK ? count : 0;
}

/* Copies a name; of one that is too long the beginning, up to the end of a character. */
static void copy_name(char *name, const char *text) {
    static const char more[] = "...";
    size_t n = strlen(text);
    const bool fits = n < BPT_CHART_NAME_SIZE;
    if (!fits) {
        n = BPT_CHART_NAME_SIZE - sizeof more;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    snprintf(name, BPT_CHART_NAME_SIZE, "%.*s%s", (int)n, text, fits ? "" : more);
}

static void get_name(const event *e, const char *key, char *name) {
    const char *text;
    name[0] = '\0';
    if (bpt_json_get_text(e->doc, e->object, key, &text) == BPT_OK) copy_name(name, text);
}

/* The last part of a path. */
static void get_file_name(const event *e, const char *key, char *name) {
    const char *text;
    char *path;
    name[0] = '\0';
    if (bpt_json_get_text(e->doc, e->object, key, &text) != BPT_OK) return;
    if (bpt_strdup(text, &path) != BPT_OK) return;
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = '\0';
    const char *slash = strrchr(path, '/');
    copy_name(name, slash && slash[1] ? slash + 1 : path);
    bpt_free(path);
}

/* ---- events ---- */

static void note_place(bpt_chart_metrics *m, double epoch, double seconds) {
    m->last_epoch = epoch;
    m->last_seconds = seconds;
}

/* What comes is not before what was: a file that says so is not of one run, and what it says there
 * is left out. */
static bool get_place(const event *e, const bpt_chart_metrics *m, double *epoch, double *seconds) {
    return get_real(e, "epoch", epoch) && get_real(e, "seconds", seconds) &&
           *epoch >= m->last_epoch && *seconds >= m->last_seconds;
}

static void add_value(const event *e, const char *key, bpt_chart_series *s,
                      const bpt_chart_place *place) {
    double value;
    if (get_real(e, key, &value)) bpt_chart_series_add(s, place, value);
}

/* The speed of an interval that is much shorter than the one before, as the last of a run may be,
 * is that of a few steps: mostly chance, and far off where ranks tell of them by exchanges. */
static void add_speed(const event *e, bpt_chart_metrics *m, const bpt_chart_place *middle,
                      double interval_s) {
    const double least_part = 0.25;
    if (interval_s >= least_part * m->interval_s)
        add_value(e, "images_per_s", &m->images_per_s, middle);
    m->interval_s = interval_s;
}

/* Loss and speed are means of the interval since the step event before: at its end the loss would
 * lie above the curve that it is of, in a short run by most of what was learnt. */
static void take_step(const event *e, bpt_chart_metrics *m) {
    double epoch, seconds;
    if (!get_place(e, m, &epoch, &seconds)) return;
    const bpt_chart_place end = {epoch, seconds, epoch};
    const bpt_chart_place middle = {m->step_epoch + (epoch - m->step_epoch) / 2,
                                    m->step_seconds + (seconds - m->step_seconds) / 2, epoch};
    add_value(e, "loss", &m->train_loss, &middle);
    add_value(e, "lr", &m->rate, &end);
    add_speed(e, m, &middle, seconds - m->step_seconds);
    m->step_epoch = epoch;
    m->step_seconds = seconds;
    note_place(m, epoch, seconds);
}

static void take_eval(const event *e, bpt_chart_metrics *m) {
    double epoch, seconds, accuracy;
    if (!get_place(e, m, &epoch, &seconds)) return;
    const bpt_chart_place place = {epoch, seconds, epoch};
    add_value(e, "loss", &m->test_loss, &place);
    if (get_real(e, "accuracy", &accuracy) && accuracy >= 0 && accuracy <= 1)
        bpt_chart_series_add(&m->test_accuracy, &place, accuracy);
    get_name(e, "split", m->split);
    note_place(m, epoch, seconds);
}

/* What was done behind the checkpoint that the run goes on from was lost. */
static void go_back(bpt_chart_metrics *m, double epoch, double seconds) {
    bpt_chart_series *const all[] = {&m->train_loss, &m->rate, &m->images_per_s, &m->test_loss,
                                     &m->test_accuracy};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) bpt_chart_series_cut(all[i], epoch);
    while (m->n_resumes > 0 && m->resumes[m->n_resumes - 1].epoch > epoch) m->n_resumes--;
    note_place(m, epoch, seconds);
    m->step_epoch = epoch;
    m->step_seconds = seconds;
    m->interval_s = 0;
}

static bpt_status note_resume(bpt_chart_metrics *m, double epoch, double seconds, uint64_t before) {
    BPT_TRY(BPT_GROW("resumes of a chart", m->n_resumes + 1, &m->resumes, &m->resumes_capacity));
    m->resumes[m->n_resumes++] = (bpt_chart_resume){
        .epoch = epoch,
        .seconds = seconds,
        .ranks = m->start.ranks == before ? 0 : m->start.ranks,
    };
    return BPT_OK;
}

static bpt_status take_start(const event *e, bpt_chart_metrics *m) {
    const uint64_t ranks_before = m->start.ranks;
    double epoch = 0, seconds = m->last_seconds;
    bpt_chart_start *s = &m->start;
    (void)get_real(e, "epoch", &epoch);
    (void)get_real(e, "seconds", &seconds);
    *s =
        (bpt_chart_start){.ranks = get_count(e, "ranks"), .batch_size = get_count(e, "batch_size")};
    get_name(e, "model", s->model);
    get_file_name(e, "data", s->data);
    get_name(e, "update", s->update);
    get_name(e, "time", s->time);
    (void)get_real(e, "lr", &s->lr);
    (void)get_real(e, "lr_factor", &s->lr_factor);
    const bool first = !m->begun || epoch < m->first_epoch;
    m->begun = true;
    go_back(m, epoch, seconds);
    if (!first) return note_resume(m, epoch, seconds, ranks_before);
    memcpy(m->first_time, s->time, sizeof m->first_time);
    m->first_epoch = epoch;
    m->first_seconds = seconds;
    return BPT_OK;
}

static bpt_status take_event(const event *e, bpt_chart_metrics *m) {
    const char *kind;
    if (bpt_json_get_text(e->doc, e->object, "event", &kind) != BPT_OK) return BPT_OK;
    if (strcmp(kind, "start") == 0) return take_start(e, m);
    if (strcmp(kind, "step") == 0) take_step(e, m);
    if (strcmp(kind, "eval") == 0) take_eval(e, m);
    return BPT_OK;
}

bpt_status bpt_chart_metrics_take(bpt_chart_metrics *m, const char *line, size_t length) {
    bpt_json_doc *doc;
    const bpt_status parsed = bpt_json_parse("metrics", line, length, &doc);
    if (parsed != BPT_OK) return parsed == BPT_ENOMEM ? parsed : BPT_OK;
    const event e = {doc, bpt_json_root(doc)};
    const bpt_status status = bpt_json_is_object(e.object) ? take_event(&e, m) : BPT_OK;
    bpt_json_doc_free(doc);
    return status;
}

/* ---- the file ---- */

/* Up to the first line without an end: who writes there was killed, and that line goes. */
static bpt_status take_lines(bpt_chart_metrics *m, FILE *file) {
    char *line = NULL;
    size_t capacity = 0;
    bpt_status status = BPT_OK;
    for (ssize_t n; status == BPT_OK && (n = getline(&line, &capacity, file)) > 0;) {
        if (line[n - 1] != '\n') break;
        status = bpt_chart_metrics_take(m, line, (size_t)n - 1);
        m->read_bytes += (uint64_t)n;
    }
    free(line); /* the C library's own memory */
    return status;
}

bpt_status bpt_chart_metrics_read(bpt_chart_metrics *m, const char *path) {
    int fd;
    uint64_t bytes;
    BPT_TRY(bpt_file_open(path, &fd, &bytes));
    FILE *file = fdopen(fd, "r");
    if (!file) {
        const bpt_status status = bpt_fail_errno(errno, "read", path);
        close(fd);
        return status;
    }
    bpt_status status = BPT_OK;
    if (fseeko(file, (off_t)m->read_bytes, SEEK_SET) != 0)
        status = bpt_fail_errno(errno, "read", path);
    if (status == BPT_OK) status = take_lines(m, file);
    if (status == BPT_OK && ferror(file)) status = bpt_fail_errno(errno, "read", path);
    fclose(file);
    return status;
}

void bpt_chart_metrics_free(bpt_chart_metrics *m) {
    bpt_free(m->resumes);
    m->resumes = NULL;
}
