#include "inner/device.h"

#include "base/file.h"
#include "base/memory.h"
#include "inner/mixed/mixed_device.h"

#include <stdlib.h>
#include <string.h>

#ifdef BPT_CUDA
#include "inner/cuda/cuda_device.h"
static const bpt_device_kind *const cuda = &bpt_cuda_device_kind;
#else
static const bpt_device_kind *const cuda = NULL;
#endif

enum { LEAST_PINNED = 1 << 20 }; /* bytes: of fewer a copy takes its start, and not its length */

static bpt_status fail_not_built(void) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--device cuda: this bpt is built without CUDA");
    bpt_hint("build where nvcc and cuDNN are (cmake --preset cuda), or use --device cpu");
    return status;
}

static bpt_status fail_no_gpu(void) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--device cuda: no GPU can be used here");
    bpt_hint(
        "it needs an NVIDIA card and its driver (does nvidia-smi list it?); --device cpu needs "
        "neither");
    return status;
}

static bpt_status fail_index(int index, int n) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--device cuda:%d: there is no such GPU", index);
    if (n == 1)
        bpt_hint("the only one is cuda:0");
    else
        bpt_hint("they are cuda:0 to cuda:%d", n - 1);
    return status;
}

static bpt_status fail_choice(const char *choice) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--device: \"%s\" is not known", choice);
    bpt_hint("choose auto, cpu, cuda, cuda+cpu, or one of several GPUs as cuda:0, cuda:0+cpu");
    return status;
}

/* @param[out] index of "cuda:INDEX", 0 of "cuda"; @param[out] mixed whether "+cpu" follows
 * @return whether it is one of these */
static bool read_choice(const char *choice, int *index, bool *mixed) {
    long value = 0;
    char *end = (char *)choice + 4;
    if (strncmp(choice, "cuda", 4) != 0) return false;
    if (*end == ':') {
        if (end[1] < '0' || end[1] > '9') return false;
        value = strtol(end + 1, &end, 10);
    }
    *mixed = strcmp(end, "+cpu") == 0;
    *index = (int)value;
    return value <= 9999 && (*mixed || *end == '\0');
}

static bpt_status open_mixed(int index, bool tf32, bpt_device **device) {
    bpt_device *fast;
    BPT_TRY(cuda->open(index, tf32, &fast));
    const bpt_status status = bpt_mixed_device_open(fast, device);
    if (status != BPT_OK) bpt_device_close(fast);
    return status;
}

bpt_status bpt_device_count(int *n) {
    *n = 0;
    return cuda ? cuda->count(n) : BPT_OK;
}

bpt_status bpt_device_open(const char *choice, bool tf32, bpt_device **device) {
    int index, n;
    bool mixed;
    *device = NULL;
    if (strcmp(choice, "cpu") == 0) return BPT_OK;
    if (!read_choice(choice, &index, &mixed)) return fail_choice(choice);
    if (!cuda) return fail_not_built();
    BPT_TRY(cuda->count(&n));
    if (n == 0) return fail_no_gpu();
    if (index >= n) return fail_index(index, n);
    return mixed ? open_mixed(index, tf32, device) : cuda->open(index, tf32, device);
}

void bpt_device_give_images(bpt_device *device) {
    if (device) device->takes_images = device->can_take_images;
}

bpt_status bpt_device_save_choices(const bpt_device *device, const char *path) {
    char *text;
    BPT_TRY(device->kind->write_choices(device, &text));
    const bpt_status status = bpt_file_write(path, text, strlen(text));
    bpt_free(text);
    return status;
}

bpt_status bpt_device_load_choices(bpt_device *device, const char *path, const char **unlike) {
    bpt_yaml *doc = NULL;
    bpt_status status = bpt_yaml_load(path, &doc);
    if (status == BPT_OK)
        status = device->kind->read_choices(device, doc, bpt_yaml_root(doc), unlike);
    if (status == BPT_EUSAGE) bpt_hint("remove the file: what it is to hold is measured anew then");
    bpt_yaml_free(doc);
    return status;
}

bpt_status bpt_device_choices_format(const bpt_yaml *doc, const bpt_yaml_node *map, int64_t format,
                                     const char **unlike) {
    const bpt_yaml_node *named = bpt_yaml_find(map, "format");
    int64_t found = format;
    *unlike = NULL;
    if (named) BPT_TRY(bpt_yaml_get_int(doc, named, "format", 1, INT32_MAX, &found));
    if (found != format) *unlike = "another format";
    return BPT_OK;
}

void bpt_device_pin(const bpt_device *device, void *at, size_t bytes, bpt_pinned *pinned) {
    *pinned = (bpt_pinned){0};
    if (!device || !device->kind->pin || bytes < LEAST_PINNED) return;
    if (device->kind->pin(device, at, bytes)) *pinned = (bpt_pinned){device, at};
}

void bpt_device_unpin(bpt_pinned *pinned) {
    if (pinned->at) pinned->device->kind->unpin(pinned->device, pinned->at);
    *pinned = (bpt_pinned){0};
}

void bpt_device_close(bpt_device *device) {
    if (device) device->kind->close(device);
}
