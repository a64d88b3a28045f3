/* The binary version of CIFAR-10 and CIFAR-100: records of one label byte (CIFAR-100: the coarse
 * label, then the fine one) and 3x32x32 bytes, channel by channel.
 * www.cs.toronto.edu/~kriz/cifar.html CIFAR-100 is taken with its fine labels. */
#include "base/file.h"
#include "base/memory.h"
#include "storage/importers/importer.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>

enum { C = 3, H = 32, W = 32, PIXELS = C * H * W };

typedef struct variant {
    const char *name;
    size_t label_bytes; /* the label is the last of them */
    uint32_t n_classes;
    const char *const *class_names;
} variant;

static const char *const names_10[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck"};

static const char *const names_100[] = {
    "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
    "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
    "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
    "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
    "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
    "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
    "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
    "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
    "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
    "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
    "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
    "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
    "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
    "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
    "table",       "tank",          "telephone", "television", "tiger",        "tractor",
    "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
    "willow_tree", "wolf",          "woman",     "worm"};

_Static_assert(sizeof names_10 / sizeof *names_10 == 10, "CIFAR-10 has 10 classes");
_Static_assert(sizeof names_100 / sizeof *names_100 == 100, "CIFAR-100 has 100 classes");

static const variant variants[] = {{"CIFAR-10", 1, 10, names_10}, {"CIFAR-100", 2, 100, names_100}};

typedef struct cifar {
    const variant *variant;
    char *const *files; /* borrowed */
    size_t n_files;
    uint64_t *counts; /* records of each file, shape [n_files] */
    FILE *file;       /* open one, NULL between files */
    size_t number;    /* of the next file to open */
    uint64_t next;    /* record, over all files */
} cifar;

static void cifar_close(void *import) {
    cifar *x = import;
    if (!x) return;
    if (x->file) fclose(x->file);
    bpt_free(x->counts);
    bpt_free(x);
}

static bool has_size_of(const variant *v, uint64_t bytes) {
    return bytes % (v->label_bytes + PIXELS) == 0;
}

/* Whether the first records have labels of that variant: where both fit, one that is not meant
 * finds pixels there. */
static bool has_labels_of(const variant *v, FILE *file) {
    enum { LOOKED_AT = 64 };
    for (int i = 0; i < LOOKED_AT; i++) {
        unsigned char label[2] = {0};
        if (fseek(file, (long)i * (long)(v->label_bytes + PIXELS), SEEK_SET) != 0 ||
            fread(label, 1, v->label_bytes, file) != v->label_bytes)
            return false;
        if (label[v->label_bytes - 1] >= v->n_classes) return false;
    }
    return true;
}

static bpt_status no_cifar(const char *path, uint64_t bytes) {
    unsigned char head[2] = {0};
    FILE *file = fopen(path, "rbe");
    if (file) {
        if (fread(head, 1, sizeof head, file) != sizeof head) head[0] = 0;
        fclose(file);
    }
    const bpt_status status =
        bpt_fail(BPT_EDATA,
                 "%s is no binary CIFAR file: its %llu bytes are no records of %d (CIFAR-10) or %d "
                 "(CIFAR-100) bytes",
                 path, (unsigned long long)bytes, 1 + PIXELS, 2 + PIXELS);
    if (head[0] == 0x1f && head[1] == 0x8b)
        bpt_hint("it is compressed: unpack it first (tar xzf) and name the .bin files");
    else
        bpt_hint("fetch it again; the binary version is cifar-10-binary.tar.gz, its files *.bin");
    return status;
}

/* Of a file whose size, some 9 million bytes or a multiple, fits both. */
static bpt_status look_at_labels(const char *path, const variant **found) {
    FILE *file = fopen(path, "rbe");
    if (!file) return bpt_fail_errno(errno, "open", path);
    const bool is_10 = has_labels_of(&variants[0], file),
               is_100 = has_labels_of(&variants[1], file);
    fclose(file);
    *found = &variants[is_10 ? 0 : 1];
    if (is_10 != is_100) return BPT_OK;
    return bpt_fail(BPT_EDATA,
                    "%s may be CIFAR-10 or CIFAR-100: its size fits both, its labels "
                    "%s",
                    path, is_10 ? "too" : "neither");
}

static bpt_status recognise(const char *path, uint64_t bytes, const variant **found) {
    const bool is_10 = has_size_of(&variants[0], bytes), is_100 = has_size_of(&variants[1], bytes);
    if (is_10 && is_100) return look_at_labels(path, found);
    *found = &variants[is_10 ? 0 : 1];
    return is_10 || is_100 ? BPT_OK : no_cifar(path, bytes);
}

static bpt_status survey(cifar *x, uint64_t *count) {
    BPT_TRY(BPT_NEW("record counts", x->n_files, &x->counts));
    *count = 0;
    for (size_t i = 0; i < x->n_files; i++) {
        struct stat info;
        if (stat(x->files[i], &info) != 0) return bpt_fail_errno(errno, "open", x->files[i]);
        if (!S_ISREG(info.st_mode)) return bpt_fail(BPT_EDATA, "%s is not a file", x->files[i]);
        if (info.st_size == 0) return bpt_fail(BPT_EDATA, "%s is empty", x->files[i]);
        const uint64_t bytes = (uint64_t)info.st_size;
        const variant *found = NULL;
        BPT_TRY(recognise(x->files[i], bytes, &found));
        if (x->variant && found != x->variant)
            return bpt_fail(BPT_EDATA, "%s is of %s, the files before it are of %s", x->files[i],
                            found->name, x->variant->name);
        x->variant = found;
        x->counts[i] = bytes / (found->label_bytes + PIXELS);
        *count += x->counts[i];
    }
    return BPT_OK;
}

static bpt_status cifar_open(const bpt_import_source *source, bpt_import_plan *plan,
                             void **import) {
    if (source->n_files == 0) return bpt_fail(BPT_EUSAGE, "cifar takes one or more files");
    cifar *x;
    BPT_TRY(BPT_NEW("cifar import", 1, &x));
    x->files = source->files;
    x->n_files = source->n_files;
    uint64_t count;
    const bpt_status status = survey(x, &count);
    if (status != BPT_OK) {
        cifar_close(x);
        return status;
    }
    *plan = (bpt_import_plan){.C = C,
                              .H = H,
                              .W = W,
                              .count = count,
                              .n_classes = x->variant->n_classes,
                              .class_names = x->variant->class_names};
    *import = x;
    return BPT_OK;
}

/* Makes sure that a file with another record is open. */
static bpt_status advance(cifar *x) {
    if (x->file) {
        const int c = getc(x->file);
        if (c != EOF) {
            ungetc(c, x->file);
            return BPT_OK;
        }
        if (ferror(x->file)) return bpt_fail_errno(errno, "read", x->files[x->number - 1]);
        fclose(x->file);
        x->file = NULL;
    }
    if (x->number == x->n_files)
        return bpt_fail(BPT_EDATA, "%s became shorter while it was read", x->files[x->number - 1]);
    x->file = fopen(x->files[x->number], "rbe");
    if (!x->file) return bpt_fail_errno(errno, "open", x->files[x->number]);
    x->number++;
    return BPT_OK;
}

/* An item is a whole record, labels first. */
static bpt_status cifar_next(void *import, bpt_import_item *item) {
    cifar *x = import;
    BPT_TRY(advance(x));
    const char *path = x->files[x->number - 1];
    const size_t size = x->variant->label_bytes + PIXELS;
    BPT_TRY(BPT_GROW("record", size, &item->owned.bytes, &item->owned.capacity));
    if (fread(item->owned.bytes, 1, size, x->file) != size)
        return ferror(x->file) ? bpt_fail_errno(errno, "read", path)
                               : bpt_fail(BPT_EDATA, "%s became shorter while it was read", path);
    item->bytes = item->owned.bytes;
    item->size = size;
    item->number = x->next++;
    return BPT_OK;
}

static void cifar_describe(void *import, const bpt_import_item *item, char *name, size_t size) {
    const cifar *x = import;
    uint64_t record = item->number;
    size_t i = 0;
    while (i + 1 < x->n_files && record >= x->counts[i]) record -= x->counts[i++];
    snprintf(name, size, "%s: record %llu", x->files[i], (unsigned long long)record);
}

static bpt_status cifar_load(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                             bpt_import_image *image) {
    const cifar *x = import;
    const size_t n = x->variant->label_bytes;
    const uint8_t *record = item->bytes;
    (void)buffer;
    *image = (bpt_import_image){
        .label = record[n - 1], .bytes = record + n, .size = PIXELS, .C = C, .H = H, .W = W};
    if (image->label < x->variant->n_classes) return BPT_OK;
    char name[BPT_IMPORT_NAME_SIZE];
    cifar_describe(import, item, name, sizeof name);
    const bpt_status status = bpt_fail(BPT_EDATA, "%s has label %u, %s has classes 0 to %u", name,
                                       image->label, x->variant->name, x->variant->n_classes - 1);
    bpt_hint("is it really a binary %s file?", x->variant->name);
    return status;
}

const bpt_importer bpt__import_cifar = {.name = "cifar",
                                        .open = cifar_open,
                                        .next = cifar_next,
                                        .load = cifar_load,
                                        .describe = cifar_describe,
                                        .close = cifar_close};
