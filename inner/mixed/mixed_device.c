/* {format: 1, shares: [...], device: what the other device writes} */
#include "inner/mixed/mixed_device.h"

#include "base/memory.h"
#include "inner/mixed/mixed_network.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 1 };

/* ---- choices ---- */

/* @param[out] out each line of @p text two places to the right; caller owns */
static bpt_status indent(const char *text, char **out) {
    size_t n_lines = 1, at = 0;
    for (const char *c = text; *c; c++) n_lines += *c == '\n';
    BPT_TRY(bpt_alloc("text of choices", 1, strlen(text) + 2 * n_lines + 1, (void **)out));
    for (const char *c = text; *c; c++) {
        const bool begins = c == text || c[-1] == '\n';
        if (begins) (*out)[at++] = ' ';
        if (begins) (*out)[at++] = ' ';
        (*out)[at++] = *c;
    }
    return BPT_OK;
}

static bpt_status write_choices(const bpt_device *device, char **text) {
    const bpt_mixed_device *d = (const bpt_mixed_device *)device;
    char *fast = NULL, *indented = NULL, *shares = NULL;
    bpt_status st;
    BPT_TRY_GOTO(st, d->fast->kind->write_choices(d->fast, &fast), out);
    BPT_TRY_GOTO(st, indent(fast, &indented), out);
    BPT_TRY_GOTO(st, bpt__mixed_shares_write(&d->shares, &shares), out);
    st = bpt_strf(text, "format: %d\nshares:%sdevice:\n%s", (int)FORMAT, shares, indented);
out:
    bpt_free(shares);
    bpt_free(indented);
    bpt_free(fast);
    return st;
}

static bpt_status read_choices(bpt_device *device, const bpt_yaml *doc, const bpt_yaml_node *map,
                               const char **unlike) {
    static const char *const keys[] = {"format", "shares", "device"};
    bpt_mixed_device *d = (bpt_mixed_device *)device;
    if (!bpt_yaml_find(map, "shares") && bpt_yaml_find(map, "gpu")) /* of the device alone */
        return d->fast->kind->read_choices(d->fast, doc, map, unlike);
    BPT_TRY(bpt_device_choices_format(doc, map, FORMAT, unlike));
    if (*unlike) return BPT_OK;
    BPT_TRY(bpt_yaml_check_keys(doc, map, "a file of shares and choices", keys,
                                sizeof keys / sizeof *keys));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!bpt_yaml_find(map, keys[i]))
            return bpt_yaml_fail(doc, map, "a file of shares and choices has \"%s\"", keys[i]);
    BPT_TRY(d->fast->kind->read_choices(d->fast, doc, bpt_yaml_find(map, "device"), unlike));
    if (*unlike) return BPT_OK;
    return bpt__mixed_shares_read(&d->shares, doc, bpt_yaml_find(map, "shares"));
}

/* ---- life ---- */

static void close_device(bpt_device *device) {
    bpt_mixed_device *d = (bpt_mixed_device *)device;
    bpt_device_close(d->fast);
    bpt__mixed_shares_clear(&d->shares);
    bpt_free(d);
}

/* .count and .open: by way of the other device. */
static bool pin(const bpt_device *device, void *at, size_t bytes) {
    const bpt_device *fast = ((const bpt_mixed_device *)device)->fast;
    return fast->kind->pin && fast->kind->pin(fast, at, bytes);
}

static void unpin(const bpt_device *device, void *at) {
    const bpt_device *fast = ((const bpt_mixed_device *)device)->fast;
    fast->kind->unpin(fast, at);
}

static const bpt_device_kind kind = {
    .name = "cuda+cpu",
    .close = close_device,
    .create = bpt__mixed_network_create,
    .free = bpt__mixed_network_free,
    .begin = bpt__mixed_network_begin,
    .end = bpt__mixed_network_end,
    .get = bpt__mixed_network_get,
    .set = bpt__mixed_network_set,
    .sharing = bpt__mixed_network_sharing,
    .host_memory = bpt__mixed_network_host_memory,
    .visit = bpt__mixed_network_visit,
    .pin = pin,
    .unpin = unpin,
    .write_choices = write_choices,
    .read_choices = read_choices,
    .products_ns = bpt__mixed_network_products_ns,
};

bpt_status bpt_mixed_device_open(bpt_device *fast, bpt_device **device) {
    const int size = (int)strcspn(fast->name, " ");
    bpt_mixed_device *d;
    BPT_TRY(BPT_NEW("device and cores", 1, &d));
    d->fast = fast;
    d->base = (bpt_device){
        .kind = &kind,
        .bf16 = fast->bf16,
        .uses_cores = true,
        .memory_bytes = fast->memory_bytes,
    };
    snprintf(d->base.name, sizeof d->base.name, "%.*s+cpu%.100s", size, fast->name,
             fast->name + size);
    *device = &d->base;
    return BPT_OK;
}
