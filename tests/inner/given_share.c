#include "tests/inner/given_share.h"

#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

void give_share(const net_fixture *f, bpt_device *device, const given_share *share,
                const char *path) {
    static const char none[] = "shares: []";
    char *text, *with, frozen[24] = "";
    size_t size;
    const char *unlike;
    net_assert_ok(bpt_device_save_choices(device, path));
    net_assert_ok(bpt_file_read(path, 1 << 20, &text, &size));
    char *at = strstr(text, none);
    assert_non_null(at);
    *at = '\0';
    if (f->model->n_frozen > 0) snprintf(frozen, sizeof frozen, ", %zu", f->model->n_frozen);
    net_assert_ok(
        bpt_strf(&with, "%sshares:\n  - [0, %" PRId64 ", %d, %zu, %zu, %zu, %d, %" PRId64 "%s]%s",
                 text, share->batch, (int)share->type, f->model->n_layers, f->n_weights,
                 f->n_pixels / (size_t)share->batch, share->n_workers, share->n_cores, frozen,
                 at + sizeof none - 1));
    net_assert_ok(bpt_file_write(path, with, strlen(with)));
    net_assert_ok(bpt_device_load_choices(device, path, &unlike));
    assert_null(unlike);
    bpt_free(with);
    bpt_free(text);
}
