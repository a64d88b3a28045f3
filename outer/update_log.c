#include "outer/update_log.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>

struct bpt__update_log {
    FILE *file;
    char *path;
    bpt_json_writer line;
};

bpt_status bpt__update_log_open(const char *path, bpt__update_log **log) {
    bpt__update_log *l = NULL;
    bpt_status status = BPT_OK;
    BPT_TRY(BPT_NEW("update log", 1, &l));
    BPT_TRY_GOTO(status, bpt_strdup(path, &l->path), err_free);
    l->file = fopen(path, "ae");
    if (!l->file) {
        status = bpt_fail_write(errno, "open", path);
        goto err_path;
    }
    *log = l;
    return BPT_OK;
err_path:
    bpt_free(l->path);
err_free:
    bpt_free(l);
    return status;
}

bpt_status bpt__update_log_add(bpt__update_log *l, const bpt__update *u) {
    bpt_json_writer *w = &l->line;
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
    const char *text = NULL;
    size_t length = 0;
    BPT_TRY(bpt_json_end_text(w, &text, &length));
    if (fwrite(text, 1, length, l->file) == length && fputc('\n', l->file) != EOF) return BPT_OK;
    return bpt_fail_write(errno, "write", l->path);
}

bpt_status bpt__update_log_flush(bpt__update_log *l) {
    return fflush(l->file) == 0 ? BPT_OK : bpt_fail_write(errno, "write", l->path);
}

bpt_status bpt__update_log_close(bpt__update_log *l) {
    if (!l) return BPT_OK;
    const bpt_status status =
        fclose(l->file) == 0 ? BPT_OK : bpt_fail_write(errno, "write", l->path);
    bpt_json_free(&l->line);
    bpt_free(l->path);
    bpt_free(l);
    return status;
}
