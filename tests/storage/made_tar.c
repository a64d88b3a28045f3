#include "tests/storage/made_tar.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME = 0, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

void made_tar_sum(made_tar *tar, size_t at) {
    uint8_t *header = tar->bytes + at;
    unsigned sum = 0;
    memset(header + SUM, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++) sum += header[i];
    snprintf((char *)header + SUM, 8, "%06o", sum);
}

void made_tar_add(made_tar *tar, const char *name, char type, const void *content, size_t size) {
    uint8_t *header = tar->bytes + tar->size;
    memset(header, 0, BLOCK);
    const char *rest = name;
    if (strlen(name) > 100) {
        rest = strchr(name + strlen(name) - 101, '/') + 1;
        memcpy(header + PREFIX, name, (size_t)(rest - 1 - name));
    }
    memcpy(header + NAME, rest, strlen(rest));
    snprintf((char *)header + SIZE, 12, "%011o", (unsigned)size);
    header[TYPE] = (uint8_t)type;
    memcpy(header + MAGIC, "ustar\00000", 8);
    made_tar_sum(tar, tar->size);
    tar->size += BLOCK;
    memset(tar->bytes + tar->size, 0, (size + BLOCK - 1) / BLOCK * BLOCK);
    memcpy(tar->bytes + tar->size, content, size);
    tar->size += (size + BLOCK - 1) / BLOCK * BLOCK;
    assert(tar->size <= sizeof tar->bytes);
}

void made_tar_text(made_tar *tar, const char *name, const char *text) {
    made_tar_add(tar, name, '0', text, strlen(text));
}

void made_tar_end(made_tar *tar) {
    memset(tar->bytes + tar->size, 0, 2 * BLOCK);
    tar->size += 2 * BLOCK;
}
