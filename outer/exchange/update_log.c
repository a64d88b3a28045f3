#include "outer/exchange/update_log.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROOM_BYTES = 1 << 16 }; /* some 300 lines */

typedef struct lines {
    char *text;
    size_t used, room;
} lines;

struct bpt__update_log {
    FILE *file;
    char *path;
    bpt_json_writer line;  /* by who adds */
    pthread_mutex_t mutex; /* guards `added` */
    lines added;
    lines writing; /* by who writes */
};

static bpt_status make_line(bpt_json_writer *w, const bpt__update *u, const char **text,
                            size_t *length) {
    bpt_json_reset(w);
    bpt_json_open_object(w, NULL);
    bpt_json_put_u64(w, "shard", u->shard);
    bpt_json_put_u64(w, "version", u->version);
    bpt_json_put_u64(w, "worker", u->worker);
    bpt_json_put_u64(w, "seq", u->seq);
    bpt_json_put_u64(w, "base", u->base);
    bpt_json_put_real(w, "gamma", u->gamma);
    bpt_json_put_real(w, "q", u->quality);
    bpt_json_put_u64(w, "staleness", u->staleness);
    bpt_json_put_u64(w, "lead", u->lead);
    bpt_json_close_object(w);
    return bpt_json_end_text(w, text, length);
}

/* A line that no other is longer than leaves its memory to all of them. */
static bpt_status reserve_line(bpt_json_writer *w) {
    const double longest = -1.2345678901234567e-300;
    const bpt__update u = {
        .shard = UINT32_MAX,
        .worker = UINT32_MAX,
        .version = UINT64_MAX,
        .seq = UINT64_MAX,
        .base = UINT64_MAX,
        .staleness = UINT64_MAX,
        .lead = UINT64_MAX,
        .gamma = longest,
        .quality = longest,
    };
    const char *text;
    size_t length;
    return make_line(w, &u, &text, &length);
}

bpt_status bpt__update_log_open(const char *path, bpt__update_log **log) {
    bpt__update_log *l = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("update log", 1, &l));
    BPT_TRY_GOTO(status, bpt_strdup(path, &l->path), err_free);
    BPT_TRY_GOTO(status, BPT_GROW("lines", ROOM_BYTES, &l->added.text, &l->added.room), err_free);
    BPT_TRY_GOTO(status, BPT_GROW("lines", ROOM_BYTES, &l->writing.text, &l->writing.room),
                 err_free);
    BPT_TRY_GOTO(status, reserve_line(&l->line), err_free);
    BPT_TRY_GOTO(status, bpt_file_append(path, &l->file), err_free);
    pthread_mutex_init(&l->mutex, NULL);
    *log = l;
    return BPT_OK;
err_free:
    bpt_json_free(&l->line);
    bpt_free(l->writing.text);
    bpt_free(l->added.text);
    bpt_free(l->path);
    bpt_free(l);
    return status;
}

static bpt_status append(lines *to, const char *text, size_t length) {
    BPT_TRY(BPT_GROW("lines of the update log", to->used + length + 1, &to->text, &to->room));
    memcpy(to->text + to->used, text, length);
    to->text[to->used + length] = '\n';
    to->used += length + 1;
    return BPT_OK;
}

bpt_status bpt__update_log_add(bpt__update_log *l, const bpt__update *u) {
    const char *text = NULL;
    size_t length = 0;
    BPT_TRY(make_line(&l->line, u, &text, &length));
    pthread_mutex_lock(&l->mutex);
    const bpt_status status = append(&l->added, text, length);
    pthread_mutex_unlock(&l->mutex);
    return status;
}

bool bpt__update_log_due(bpt__update_log *l, size_t at_least) {
    pthread_mutex_lock(&l->mutex);
    const bool due = l->added.used >= at_least;
    pthread_mutex_unlock(&l->mutex);
    return due;
}

bpt_status bpt__update_log_write(bpt__update_log *l, size_t at_least) {
    pthread_mutex_lock(&l->mutex);
    const bool due = l->added.used >= at_least;
    if (due) {
        const lines swap = l->added;
        l->added = l->writing;
        l->writing = swap;
    }
    pthread_mutex_unlock(&l->mutex);
    if (!due) return BPT_OK;
    const size_t n = l->writing.used;
    l->writing.used = 0;
    if (fwrite(l->writing.text, 1, n, l->file) == n && fflush(l->file) == 0) return BPT_OK;
    return bpt_fail_write(errno, "write", l->path);
}

bpt_status bpt__update_log_close(bpt__update_log *l) {
    if (!l) return BPT_OK;
    bpt_status status = bpt__update_log_write(l, 0);
    if (fclose(l->file) != 0 && status == BPT_OK) status = bpt_fail_write(errno, "write", l->path);
    pthread_mutex_destroy(&l->mutex);
    bpt_json_free(&l->line);
    bpt_free(l->writing.text);
    bpt_free(l->added.text);
    bpt_free(l->path);
    bpt_free(l);
    return status;
}
