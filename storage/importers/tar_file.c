#include "storage/importers/tar_file.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, MAX_EXTRA = 1 << 20 }; /* MAX_EXTRA: bytes of a long name or a pax header */

/* A header block (POSIX.1-1988 "ustar"). Numbers are octal texts, or big-endian with the highest
 * bit of the field set (GNU). */
typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
} header;

_Static_assert(sizeof(header) == BLOCK, "a header is a block");

struct bpt__tar_file {
    const char *path; /* borrowed */
    int fd;
    uint64_t size;   /* of the archive */
    uint64_t at;     /* of the next header */
    char *name;      /* of the member */
    char *long_name; /* said before the next member's header; NULL: nothing said */
    bool has_size;   /* likewise */
    uint64_t long_size;
};

static bpt_status malformed(const bpt__tar_file *t, const char *what) {
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is damaged or no tar file: %s at byte %llu",
                                       t->path, what, (unsigned long long)t->at);
    bpt_hint("fetch it again and compare its size or checksum with the publisher's");
    return status;
}

static bpt_status read_at(const bpt__tar_file *t, uint64_t offset, void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = pread(t->fd, (char *)data + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bpt_fail_errno(errno, "read", t->path);
        if (n == 0) return malformed(t, "it ends early,");
        done += (size_t)n;
    }
    return BPT_OK;
}

/* ---- begin and end ---- */

static bpt_status check_beginning(bpt__tar_file *t) {
    struct stat info;
    uint8_t head[4] = {0};
    if (fstat(t->fd, &info) != 0) return bpt_fail_errno(errno, "read", t->path);
    if (!S_ISREG(info.st_mode)) return bpt_fail(BPT_EDATA, "%s is not a file", t->path);
    if (info.st_size == 0) return bpt_fail(BPT_EDATA, "%s is empty", t->path);
    t->size = (uint64_t)info.st_size;
    if (t->size >= sizeof head) BPT_TRY(read_at(t, 0, head, sizeof head));
    const bool packed = (head[0] == 0x1f && head[1] == 0x8b) || /* gzip, xz, zstd, bzip2 */
                        memcmp(head,
                               "\xfd"
                               "7zX",
                               4) == 0 ||
                        memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 || memcmp(head, "BZh", 3) == 0;
    if (!packed) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EDATA, "%s is compressed", t->path);
    bpt_hint("unpack it first (gunzip, unxz, unzstd or bunzip2): images are compressed already");
    return status;
}

bpt_status bpt__tar_open(const char *path, bpt__tar_file **out) {
    bpt__tar_file *t;
    BPT_TRY(BPT_NEW("tar file", 1, &t));
    t->path = path;
    t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bpt_status status = t->fd < 0 ? bpt_fail_errno(errno, "open", path) : check_beginning(t);
    if (status == BPT_OK)
        *out = t;
    else
        bpt__tar_close(t);
    return status;
}

void bpt__tar_close(bpt__tar_file *t) {
    if (!t) return;
    if (t->fd >= 0) close(t->fd);
    bpt_free(t->name);
    bpt_free(t->long_name);
    bpt_free(t);
}

/* ---- headers ---- */

/* @return whether the field is a number */
static bool read_number(const char *field, size_t n, uint64_t *value) {
    const unsigned char *p = (const unsigned char *)field, *end = p + n;
    *value = 0;
    if (*p & 0x80) {
        uint64_t high = *p++ & 0x7f;
        for (; p < end; p++) {
            if (high) return false; /* more than 64 bits, or negative */
            high = *value >> 56;
            *value = *value << 8 | *p;
        }
        return high == 0;
    }
    while (p < end && *p == ' ') p++;
    for (; p < end && *p >= '0' && *p <= '7'; p++) *value = *value << 3 | (uint64_t)(*p - '0');
    return p == end || *p == ' ' || *p == '\0';
}

static bool is_zero(const header *h) {
    const char *bytes = (const char *)h;
    for (size_t i = 0; i < BLOCK; i++)
        if (bytes[i]) return false;
    return true;
}

/* The sum of the bytes, those of the sum itself taken as spaces; some have summed signed bytes. */
static bool sum_is_right(const header *h) {
    const unsigned char *bytes = (const unsigned char *)h;
    const size_t from = offsetof(header, checksum), to = from + sizeof h->checksum;
    uint64_t said;
    int64_t sum = 0, signed_sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        const unsigned char byte = i >= from && i < to ? ' ' : bytes[i];
        sum += byte;
        signed_sum += (signed char)byte;
    }
    return read_number(h->checksum, sizeof h->checksum, &said) &&
           ((int64_t)said == sum || (int64_t)said == signed_sum);
}

static bpt_status set_name(bpt__tar_file *t, const header *h) {
    bpt_free(t->name);
    t->name = NULL;
    if (t->long_name) {
        t->name = t->long_name;
        t->long_name = NULL;
        return BPT_OK;
    }
    const bool has_prefix = memcmp(h->magic, "ustar", 6) == 0 && h->prefix[0];
    return has_prefix ? bpt_strf(&t->name, "%.*s/%.*s", (int)sizeof h->prefix, h->prefix,
                                 (int)sizeof h->name, h->name)
                      : bpt_strf(&t->name, "%.*s", (int)sizeof h->name, h->name);
}

/* Reads what stands between two headers: a name, or pax records.
 * @param[out] text with a 0 byte behind; caller owns */
static bpt_status read_extra(bpt__tar_file *t, uint64_t offset, uint64_t size, char **text) {
    if (size > MAX_EXTRA) return malformed(t, "a name or header of over 1 MiB");
    BPT_TRY(bpt_alloc("tar header", (size_t)size + 1, 1, (void **)text));
    const bpt_status status = read_at(t, offset, *text, (size_t)size);
    if (status != BPT_OK) bpt_free(*text);
    return status;
}

static bpt_status take_long_name(bpt__tar_file *t, uint64_t offset, uint64_t size) {
    char *text;
    BPT_TRY(read_extra(t, offset, size, &text));
    bpt_free(t->long_name);
    t->long_name = text;
    return BPT_OK;
}

static bpt_status take_record(bpt__tar_file *t, const char *key, const char *value) {
    if (strcmp(key, "path") == 0) {
        bpt_free(t->long_name);
        t->long_name = NULL;
        return bpt_strdup(value, &t->long_name);
    }
    if (strcmp(key, "size") != 0) return BPT_OK;
    t->long_size = 0;
    for (const char *p = value; *p; p++) {
        if (*p < '0' || *p > '9' || t->long_size > UINT64_MAX / 16)
            return malformed(t, "a size that is no number");
        t->long_size = 10 * t->long_size + (uint64_t)(*p - '0');
    }
    t->has_size = true;
    return BPT_OK;
}

/* Records "LENGTH KEY=VALUE\n"; the length counts all of the record. */
static bpt_status take_pax(bpt__tar_file *t, uint64_t offset, uint64_t size) {
    char *text;
    BPT_TRY(read_extra(t, offset, size, &text));
    bpt_status status = BPT_OK;
    for (size_t at = 0; at < size && status == BPT_OK;) {
        size_t length = 0, i = at;
        for (; i < size && text[i] >= '0' && text[i] <= '9' && length <= MAX_EXTRA; i++)
            length = 10 * length + (size_t)(text[i] - '0');
        char *key = text + i + 1;
        if (i >= size || text[i] != ' ' || length > size - at || at + length < i + 2 ||
            text[at + length - 1] != '\n') {
            status = malformed(t, "a pax header that makes no sense");
            break;
        }
        text[at + length - 1] = '\0';
        char *equals = strchr(key, '=');
        if (equals) {
            *equals = '\0';
            status = take_record(t, key, equals + 1);
        }
        at += length;
    }
    bpt_free(text);
    return status;
}

/* Reads a header block. @param[out] size of the content behind it, which is in the archive */
static bpt_status read_header(bpt__tar_file *t, header *h, uint64_t *size) {
    if (t->size - t->at < BLOCK) return malformed(t, "it ends early,");
    BPT_TRY(read_at(t, t->at, h, sizeof *h));
    if (is_zero(h)) return BPT_OK;
    if (!sum_is_right(h)) return malformed(t, "a header with a wrong checksum");
    if (!read_number(h->size, sizeof h->size, size)) return malformed(t, "a size of no number");
    const bool is_extra = strchr("LKxg", h->type) && h->type; /* pax speaks of the member after */
    if (t->has_size && !is_extra) *size = t->long_size;
    if (*size > t->size - t->at - BLOCK) return malformed(t, "it ends within the file that begins");
    return BPT_OK;
}

static uint64_t padded(uint64_t size) {
    return (size + BLOCK - 1) / BLOCK * BLOCK;
}

bpt_status bpt__tar_next(bpt__tar_file *t, bpt__tar_member *member, bool *found) {
    for (;;) {
        header h;
        uint64_t size = 0;
        if (t->at >= t->size) return malformed(t, "it ends without tar's mark of the end,");
        BPT_TRY(read_header(t, &h, &size));
        *found = !is_zero(&h);
        if (!*found) return BPT_OK;
        const uint64_t content = t->at + BLOCK;
        if (h.type == 'L') BPT_TRY(take_long_name(t, content, size));
        if (h.type == 'x') BPT_TRY(take_pax(t, content, size));
        t->at = content + padded(size);
        if (strchr("LKxg", h.type) && h.type) continue;
        t->has_size = false;
        BPT_TRY(set_name(t, &h));
        if (h.type != '0' && h.type != '\0' && h.type != '7') continue;
        *member = (bpt__tar_member){.name = t->name, .offset = content, .size = size};
        return BPT_OK;
    }
}
