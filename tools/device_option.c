#include "tools/device_option.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

static bool is_auto(const char *choice) {
    return strcmp(choice, "auto") == 0;
}

bpt_status bpt_device_option_check(const char *choice, bpt_precision precision) {
    if (strcmp(choice, "cpu") == 0) return bpt_precision_check(precision, NULL);
    if (is_auto(choice) || precision != BPT_PRECISION_BF16_EMULATED) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--precision bf16-emulated is of the processor's cores, not of --device %s",
        choice);
    bpt_hint("use bf16, or compute on the cores (--device cpu)");
    return status;
}

static bool is_mixed(const char *choice) {
    return strcmp(choice, "cuda+cpu") == 0;
}

static bpt_status fail_few(int n, bpt_host_place place) {
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "--device cuda: process %u of %u on this host finds %d GPU%s",
                 place.index + 1, place.n, n, n == 1 ? "" : "s");
    bpt_hint(
        "start no more than there are GPUs; --device auto leaves the others to the cores; cuda:0 "
        "(or cuda:0+cpu) is one for all, or where each process sees a GPU of its own, that one");
    return status;
}

/* The first that none is left for says it for the others of its host. */
static void warn_few(int n, bpt_host_place place) {
    const unsigned n_left = place.n - place.index;
    bpt_warn(
        "process %u of %u on this host finds %d GPU%s: %u process%s take%s the cores; where each "
        "process sees a GPU of its own, --device cuda:0 names it",
        place.index + 1, place.n, n, n == 1 ? "" : "s", n_left, n_left == 1 ? "" : "es",
        n_left == 1 ? "s" : "");
}

bpt_status bpt_device_option_own(const char *choice, bpt_host_place place, int n_devices,
                                 char own[BPT_DEVICE_CHOICE_SIZE]) {
    const bool any = n_devices > 0;
    snprintf(own, BPT_DEVICE_CHOICE_SIZE, "%s", is_auto(choice) ? "cpu" : choice);
    if (any && place.index < (unsigned)n_devices)
        snprintf(own, BPT_DEVICE_CHOICE_SIZE, "cuda:%u%s", place.index,
                 is_mixed(choice) ? "+cpu" : "");
    else if (any && !is_auto(choice))
        return fail_few(n_devices, place);
    else if (any && place.index == (unsigned)n_devices)
        warn_few(n_devices, place);
    return BPT_OK; /* "cuda" where there is none: to open it says what is missing */
}

static bpt_status open_choice(const char *choice, bpt_precision precision, bpt_host_place place,
                              bpt_device **device) {
    const bool tf32 = precision == BPT_PRECISION_TF32;
    char own[BPT_DEVICE_CHOICE_SIZE];
    int n;
    if (!is_auto(choice) && strcmp(choice, "cuda") != 0 && !is_mixed(choice))
        return bpt_device_open(choice, tf32, device);
    if (is_auto(choice) && precision == BPT_PRECISION_BF16_EMULATED) return BPT_OK;
    BPT_TRY(bpt_device_count(&n));
    BPT_TRY(bpt_device_option_own(choice, place, n, own));
    return bpt_device_open(own, tf32, device);
}

bpt_status bpt_device_option_open(const char *choice, bpt_precision precision, bpt_host_place place,
                                  bpt_device **device) {
    bpt_device *opened = NULL;
    *device = NULL;
    bpt_status status = open_choice(choice, precision, place, &opened);
    if (status != BPT_OK && status != BPT_ENOMEM && is_auto(choice)) {
        bpt_warn("--device auto takes the cores: %s", bpt_error_last()->text);
        status = BPT_OK;
    }
    if (status == BPT_OK) status = bpt_precision_check(precision, opened);
    if (status == BPT_OK)
        *device = opened;
    else
        bpt_device_close(opened);
    return status;
}

unsigned bpt_device_option_threads(const bpt_device *device, unsigned wanted, unsigned cores) {
    if (wanted) return wanted;
    return device && !device->uses_cores ? 1 : cores;
}

void bpt_device_option_say(const bpt_network *net) {
    const char *sharing = bpt_network_sharing(net);
    if (sharing) bpt_info("%s", sharing);
}

void bpt_device_short_name(const char *name, char *text, size_t size) {
    snprintf(text, size, "%.*s", name[0] ? (int)strcspn(name, " ") : 3, name[0] ? name : "cpu");
}
