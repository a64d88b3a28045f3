#include "storage/stage/stage_blocks.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/memory.h"
#include "storage/stage/stage_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE = 17,        /* bytes of a block in the list: 16 digits and the end of the line */
    FLUSH_EVERY = 64, /* blocks: so no flush takes long, and the file fills no memory */
};

struct bpt__blocks {
    bpt__blocks_job job;
    int from, to, list; /* open files, -1: not open */
    size_t header;      /* bytes of the list's first line, with its end */
    uint64_t n;         /* blocks in all */
    uint64_t n_listed;  /* that were found in the list */
    uint64_t *sums;     /* of these, shape [n_listed] */
    uint64_t n_right;   /* the first so many are */
    uint64_t n_copied;
    char *buffer; /* shape [BPT__BLOCK_BYTES] */
};

static uint64_t count_blocks(uint64_t bytes) {
    return (bytes + BPT__BLOCK_BYTES - 1) / BPT__BLOCK_BYTES;
}

uint64_t bpt__blocks_list_bytes(uint64_t bytes) {
    return count_blocks(bytes) * LINE;
}

static size_t block_bytes(const bpt__blocks *b, uint64_t i) {
    const uint64_t left = b->job.bytes - i * BPT__BLOCK_BYTES;
    return left < BPT__BLOCK_BYTES ? (size_t)left : BPT__BLOCK_BYTES;
}

static uint64_t up_to(const bpt__blocks *b, uint64_t i) {
    const uint64_t bytes = i * BPT__BLOCK_BYTES;
    return bytes < b->job.bytes ? bytes : b->job.bytes;
}

uint64_t bpt__blocks_done(const bpt__blocks *b) {
    return up_to(b, b->n_right);
}

uint64_t bpt__blocks_copied(const bpt__blocks *b) {
    return up_to(b, b->n_right) - up_to(b, b->n_right - b->n_copied);
}

static bpt_status write_at(int fd, const char *path, const char *data, size_t size, uint64_t at) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(fd, data + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_write(errno, "write", path);
        done += (size_t)n;
    }
    return BPT_OK;
}

/* Leaves the first blocks alone. */
static bpt_status cut(const bpt__blocks *b, uint64_t n_blocks) {
    if (ftruncate(b->to, (off_t)up_to(b, n_blocks)) != 0)
        return bpt_fail_write(errno, "cut", b->job.to);
    if (ftruncate(b->list, (off_t)(b->header + n_blocks * LINE)) != 0)
        return bpt_fail_write(errno, "cut", b->job.list);
    return BPT_OK;
}

/* ---- the list ---- */

/* @return whether the line is a block's, as it is written */
static bool parse_line(const char *line, uint64_t *sum) {
    char again[LINE + 1];
    *sum = strtoull(line, NULL, 16);
    snprintf(again, sizeof again, "%016" PRIx64 "\n", *sum);
    return memcmp(line, again, LINE) == 0;
}

static void parse_list(bpt__blocks *b, const char *text, size_t size) {
    while (b->n_listed < b->n && size >= LINE && parse_line(text, &b->sums[b->n_listed])) {
        b->n_listed++;
        text += LINE;
        size -= LINE;
    }
}

static bool has_header(const bpt__blocks *b, const char *text, size_t size) {
    return size >= b->header && memcmp(text, b->job.header, b->header - 1) == 0 &&
           text[b->header - 1] == '\n';
}

/* A list that is not right is none. */
static bpt_status read_list(bpt__blocks *b) {
    const size_t size = b->header + (size_t)b->n * LINE;
    char *text;
    size_t n = 0;
    BPT_TRY(bpt_alloc("list of blocks", size + 1, 1, (void **)&text)); /* ends with a 0 */
    const bpt_status status = bpt__read_at(b->list, b->job.list, text, size, 0, &n);
    const bool known = status == BPT_OK && has_header(b, text, n);
    if (known) parse_list(b, text + b->header, n - b->header);
    bpt_free(text);
    BPT_TRY(status);
    if (known) return BPT_OK;
    BPT_TRY(cut(b, 0));
    BPT_TRY(write_at(b->list, b->job.list, b->job.header, b->header - 1, 0));
    return write_at(b->list, b->job.list, "\n", 1, b->header - 1);
}

/* ---- begin and end ---- */

static bpt_status open_files(bpt__blocks *b) {
    const bpt__blocks_job *job = &b->job;
    b->from = open(job->from, O_RDONLY | O_CLOEXEC);
    if (b->from < 0) return bpt_fail_errno(errno, "open", job->from);
    /* It is read once, from its begin to its end: systems then read further ahead. */
    (void)posix_fadvise(b->from, 0, 0, POSIX_FADV_SEQUENTIAL);
    b->to = open(job->to, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (b->to < 0) return bpt_fail_write(errno, "open", job->to);
    b->list = open(job->list, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return b->list < 0 ? bpt_fail_write(errno, "open", job->list) : BPT_OK;
}

bpt_status bpt__blocks_open(const bpt__blocks_job *job, bpt__blocks **out) {
    bpt__blocks *b;
    BPT_TRY(BPT_NEW("blocks", 1, &b));
    *b = (bpt__blocks){
        .job = *job,
        .from = -1,
        .to = -1,
        .list = -1,
        .header = strlen(job->header) + 1,
        .n = count_blocks(job->bytes),
    };
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("sums of blocks", b->n + 1, &b->sums), fail);
    BPT_TRY_GOTO(status, bpt_alloc("block", BPT__BLOCK_BYTES, 1, (void **)&b->buffer), fail);
    BPT_TRY_GOTO(status, open_files(b), fail);
    BPT_TRY_GOTO(status, read_list(b), fail);
    *out = b;
    return BPT_OK;
fail:
    bpt__blocks_close(b);
    return status;
}

void bpt__blocks_close(bpt__blocks *b) {
    if (!b) return;
    if (b->from >= 0) close(b->from);
    if (b->to >= 0) close(b->to);
    if (b->list >= 0) close(b->list);
    bpt_free(b->sums);
    bpt_free(b->buffer);
    bpt_free(b);
}

/* ---- blocks ---- */

bpt_status bpt__blocks_check(bpt__blocks *b, bool *over) {
    *over = b->n_right == b->n_listed;
    if (!*over) {
        const size_t size = block_bytes(b, b->n_right);
        size_t n;
        BPT_TRY(bpt__read_at(b->to, b->job.to, b->buffer, size, up_to(b, b->n_right), &n));
        *over = n < size || bpt_checksum(b->buffer, size) != b->sums[b->n_right];
        if (!*over) b->n_right++;
    }
    return *over ? cut(b, b->n_right) : BPT_OK;
}

static bpt_status list_block(const bpt__blocks *b, uint64_t sum) {
    char line[LINE + 1];
    snprintf(line, sizeof line, "%016" PRIx64 "\n", sum);
    return write_at(b->list, b->job.list, line, LINE, b->header + b->n_right * LINE);
}

bpt_status bpt__blocks_copy(bpt__blocks *b, bool *over) {
    *over = b->n_right == b->n;
    if (*over) return BPT_OK;
    const size_t size = block_bytes(b, b->n_right);
    const uint64_t at = up_to(b, b->n_right);
    size_t n;
    BPT_TRY(bpt__read_at(b->from, b->job.from, b->buffer, size, at, &n));
    if (n < size) return bpt_fail(BPT_EIO, "%s became shorter while it was copied", b->job.from);
    BPT_TRY(write_at(b->to, b->job.to, b->buffer, size, at));
    BPT_TRY(list_block(b, bpt_checksum(b->buffer, size)));
    b->n_right++;
    b->n_copied++;
    *over = b->n_right == b->n;
    if (b->n_copied % FLUSH_EVERY == 0 && fdatasync(b->to) != 0)
        return bpt_fail_write(errno, "flush", b->job.to);
    return BPT_OK;
}

bpt_status bpt__blocks_flush(const bpt__blocks *b) {
    if (fsync(b->to) != 0) return bpt_fail_write(errno, "flush", b->job.to);
    if (fsync(b->list) != 0) return bpt_fail_write(errno, "flush", b->job.list);
    return BPT_OK;
}
