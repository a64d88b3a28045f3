#include "base/checksum.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

uint64_t bpt_checksum(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}

static bpt_status sum_up(int fd, const char *path, XXH3_state_t *state, char *piece, size_t size,
                         uint64_t *bytes) {
    uint64_t done = 0;
    for (;;) {
        const ssize_t n = read(fd, piece, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_errno(errno, "read", path);
        if (n == 0) break;
        XXH3_64bits_update(state, piece, (size_t)n);
        done += (uint64_t)n;
    }
    *bytes = done;
    return BPT_OK;
}

bpt_status bpt_checksum_file(const char *path, uint64_t *bytes, uint64_t *checksum) {
    enum { PIECE_BYTES = 1 << 20 };
    int fd;
    uint64_t size; /* of a file that grows it is not all that is read */
    BPT_TRY(bpt_file_open(path, &fd, &size));
    XXH3_state_t *state = XXH3_createState();
    char *piece = NULL;
    bpt_status status;
    BPT_TRY_GOTO(status, BPT_NEW("piece of a file", PIECE_BYTES, &piece), done);
    if (!state || XXH3_64bits_reset(state) == XXH_ERROR) {
        status = bpt_fail(BPT_ENOMEM, "out of memory for the checksum of %s", path);
        goto done;
    }
    status = sum_up(fd, path, state, piece, PIECE_BYTES, bytes);
    if (status == BPT_OK) *checksum = XXH3_64bits_digest(state);
done:
    bpt_free(piece);
    XXH3_freeState(state);
    close(fd);
    return status;
}
