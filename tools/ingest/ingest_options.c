#include "tools/ingest/ingest_options.h"

#include "base/memory.h"
#include "storage/images/image.h"
#include "storage/importers/import_stream.h"
#include "tools/ingest/ingest_commands.h"

#include <sys/stat.h>

#include <sched.h>
#include <string.h>

#define ROW(field, option_type, ...)                                                               \
    { .type = (option_type), .offset = offsetof(bpt_ingest_options, field), __VA_ARGS__ }

/* ---- rows that several commands have ---- */

#define ROWS_OF_ALL                                                                                \
    ROW(out, BPT_OPTION_TEXT, .name = "out", .unit = "DATASET", .group = "where to",               \
        .help = "folder of the dataset; made if it is not there"),                                 \
        ROW(split, BPT_OPTION_TEXT, .name = "split", .unit = "NAME",                               \
            .help = "name of the split, such as train or test"),                                   \
        ROW(force, BPT_OPTION_FLAG, .name = "force",                                               \
            .help =                                                                                \
                "replace the split if it is there; the old one stays until the new one\n"          \
                "is whole"),                                                                       \
        ROW(append, BPT_OPTION_FLAG, .name = "append",                                             \
            .help =                                                                                \
                "add the images to the split, which must be there; all of them appear\n"           \
                "at once, at its end"),                                                            \
        ROW(resume, BPT_OPTION_FLAG, .name = "resume",                                             \
            .help =                                                                                \
                "go on where the same command was stopped: behind what it had stored;\n"           \
                "with --append there must be something to go on with")

#define ROWS_OF_SIZE                                                                               \
    ROW(resize, BPT_OPTION_PAIR, .name = "resize", .min = 1, .max = BPT_IMAGE_MAX_SIDE,            \
        .unit = "H W", .group = "images", .help = "stretch every image to this height and width"), \
        ROW(short_side, BPT_OPTION_INT, .name = "short-side", .min = 1, .max = BPT_IMAGE_MAX_SIDE, \
            .unit = "S",                                                                           \
            .help = "give the shorter side this length and keep the ratio of the sides"),          \
        ROW(crop, BPT_OPTION_PAIR, .name = "crop", .min = 1, .max = BPT_IMAGE_MAX_SIDE,            \
            .unit = "H W", .help = "keep this much of the middle; goes with --short-side"),        \
        ROW(channels, BPT_OPTION_CHOICE, .name = "channels", .value = "as-is",                     \
            .choices = "as-is|1|3",                                                                \
            .help =                                                                                \
                "1 makes all images grey, 3 makes all of them red, green, blue; as-is\n"           \
                "goes by the dataset, in a new one by the first image")

#define ROWS_OF_FILES                                                                              \
    ROW(encoded, BPT_OPTION_FLAG, .name = "encoded",                                               \
        .help =                                                                                    \
            "store JPEG files instead of pixels, each in a size of its own; those\n"               \
            "that need no change stay as they are; training brings them to a size"),               \
        ROW(quality, BPT_OPTION_INT, .name = "quality", .min = 1, .max = 100, .unit = "Q",         \
            .help =                                                                                \
                "with --encoded: of files that have to be encoded (with chroma 4:2:0);\n"          \
                "unless given: 95")

#define ROW_CLASS_NAMES                                                                            \
    ROW(class_names, BPT_OPTION_TEXT, .name = "class-names", .unit = "FILE", .group = "classes",   \
        .help = "text file with the name of one class a line, from class 0 on")

#define ROW_CLASSES(most)                                                                          \
    ROW(classes, BPT_OPTION_INT, .name = "classes", .min = 1, .max = (most), .unit = "N",          \
        .help =                                                                                    \
            "number of classes; a label from N on is an error; unless given: as\nmany as the "     \
            "dataset has, in a new one up to the highest label")

#define ROW_THREADS                                                                                \
    ROW(threads, BPT_OPTION_INT, .name = "threads", .min = 1, .max = BPT_IMPORT_MAX_THREADS,       \
        .unit = "N", .group = "work",                                                              \
        .help =                                                                                    \
            "threads that make images; unless given: one for each core. The dataset\n"             \
            "is the same for any number")

#define ROW_SKIP_BAD                                                                               \
    ROW(skip_bad, BPT_OPTION_TEXT, .name = "skip-bad", .unit = "REPORT",                           \
        .help =                                                                                    \
            "pass over images that are missing or damaged and list them with the\n"                \
            "reasons in the file REPORT; else the first of them ends the work")

/* ---- tables ---- */

static const bpt_option idx_rows[] = {ROWS_OF_ALL,  ROW_CLASS_NAMES, ROW_CLASSES(256),
                                      ROWS_OF_SIZE, ROW_THREADS,     ROW_SKIP_BAD};
static const bpt_option cifar_rows[] = {ROWS_OF_ALL, ROWS_OF_SIZE, ROW_THREADS, ROW_SKIP_BAD};
static const bpt_option folder_rows[] = {ROWS_OF_ALL,   ROW_CLASS_NAMES, ROWS_OF_SIZE,
                                         ROWS_OF_FILES, ROW_THREADS,     ROW_SKIP_BAD};
static const bpt_option webdataset_rows[] = {ROWS_OF_ALL,  ROW_CLASS_NAMES, ROW_CLASSES(65536),
                                             ROWS_OF_SIZE, ROWS_OF_FILES,   ROW_THREADS,
                                             ROW_SKIP_BAD};

static const bpt_option list_rows[] = {
    ROWS_OF_ALL,
    ROW(root, BPT_OPTION_TEXT, .name = "root", .unit = "DIR", .group = "what from",
        .help = "folder that paths in the list are relative to; unless given: that of\nthe list"),
    ROW_CLASS_NAMES,
    ROW_CLASSES(65536),
    ROWS_OF_SIZE,
    ROWS_OF_FILES,
    ROW_THREADS,
    ROW_SKIP_BAD};

static const bpt_option caffe_rows[] = {
    ROWS_OF_ALL,
    ROW(channel_order, BPT_OPTION_CHOICE, .name = "channel-order", .value = "bgr",
        .choices = "bgr|rgb", .group = "what from",
        .help = "order of the planes of raw images: Caffe's tools write blue, green,\n"
                "red, which becomes red, green, blue; rgb leaves them as they are"),
    ROW_CLASS_NAMES,
    ROW_CLASSES(65536),
    ROWS_OF_SIZE,
    ROWS_OF_FILES,
    ROW_THREADS,
    ROW_SKIP_BAD};

static const bpt_option glyphs_rows[] = {
    ROWS_OF_ALL,
    ROW(count, BPT_OPTION_INT, .name = "count", .value = "10000", .min = 1, .max = 4294967295.0,
        .unit = "N", .group = "images", .help = "how many images to draw"),
    ROW(seed, BPT_OPTION_INT, .name = "seed", .value = "1", .min = 0, .max = 9007199254740992.0,
        .unit = "SEED",
        .help = "seed of what is drawn; splits of other names differ also with the same"),
    ROW_THREADS};

#define USAGE(command, rows, least, most, what, says)                                              \
    {                                                                                              \
        .name = "bpt-ingest " command, .synopsis = what "--out DATASET --split NAME [option...]",  \
        .summary = says, .epilogue = BPT_INGEST_EXIT_STATUS, .options = rows,                      \
        .n_options = sizeof rows / sizeof *rows, .min_operands = least, .max_operands = most       \
    }

const bpt_command bpt_ingest_idx_usage =
    USAGE("idx", idx_rows, 2, 2, "IMAGES LABELS ",
          "Stores images and labels in the IDX format of MNIST, plain or gzip.");
const bpt_command bpt_ingest_cifar_usage =
    USAGE("cifar", cifar_rows, 1, -1, "FILE... ",
          "Stores files of the binary version of CIFAR-10 or CIFAR-100 (with its fine labels).");
const bpt_command bpt_ingest_folder_usage =
    USAGE("folder", folder_rows, 1, 1, "DIR ",
          "Stores JPEG and PNG files that lie in a folder for each class.");
const bpt_command bpt_ingest_list_usage =
    USAGE("list", list_rows, 1, 1, "FILE ",
          "Stores JPEG and PNG files that a text file lists, PATH LABEL on a line.");
const bpt_command bpt_ingest_caffe_usage =
    USAGE("caffe", caffe_rows, 1, 1, "LMDB ",
          "Stores an LMDB of Caffe's: a Datum to an image, raw or encoded.");
const bpt_command bpt_ingest_webdataset_usage =
    USAGE("webdataset", webdataset_rows, 1, -1, "SHARD... ",
          "Stores tar files of WebDataset: NAME.jpg or NAME.png beside NAME.cls.");
const bpt_command bpt_ingest_glyphs_usage =
    USAGE("glyphs", glyphs_rows, 0, 0, "",
          "Draws digits, 28x28 and grey, and stores them: data to try training with.");

/* ---- what they mean ---- */

/* @param[in,out] path of a file; of its folder then */
static void cut_to_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash)
        strcpy(path, ".");
    else
        slash[slash == path] = '\0';
}

/* Whether a file lies, or will lie, in the folder of a dataset, whose files have names of theirs.
 */
static bpt_status lies_in(const char *file, const char *dataset, bool *in) {
    char *folder;
    struct stat a, b;
    BPT_TRY(bpt_strf(&folder, "%s ", file)); /* room for a point */
    folder[strlen(file)] = '\0';
    cut_to_folder(folder);
    *in = strcmp(folder, dataset) == 0 || (stat(folder, &a) == 0 && stat(dataset, &b) == 0 &&
                                           a.st_dev == b.st_dev && a.st_ino == b.st_ino);
    bpt_free(folder);
    return BPT_OK;
}

static bpt_status check_report(const bpt_ingest_options *o) {
    bool in = false;
    if (o->skip_bad) BPT_TRY(lies_in(o->skip_bad, o->out, &in));
    if (!in) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%s of --skip-bad lies in the folder of the dataset", o->skip_bad);
    bpt_hint("put the report beside it");
    return status;
}

bpt_status bpt_ingest_check_mode(const bpt_ingest_options *o) {
    BPT_TRY(check_report(o));
    if (!o->append || !o->force) return BPT_OK;
    const bpt_status status = bpt_fail(
        BPT_EUSAGE, "--append does not go with --force: one adds to a split, one replaces it");
    bpt_hint("leave out one of them");
    return status;
}

bpt_status bpt_ingest_fit(const bpt_ingest_options *o, bpt_picture_fit *fit) {
    static const uint32_t channels[] = {0, 1, 3};
    if (o->resize[0] && (o->short_side || o->crop[0]))
        return bpt_fail(BPT_EUSAGE, "--resize does not go with --%s: each says the size",
                        o->short_side ? "short-side" : "crop");
    if (o->crop[0] && !o->short_side) {
        const bpt_status status = bpt_fail(BPT_EUSAGE, "--crop needs --short-side");
        bpt_hint("such as --short-side 256 --crop 224 224: then every image is large enough");
        return status;
    }
    const int64_t *side = o->resize[0] ? o->resize : o->crop;
    *fit = (bpt_picture_fit){.size = {.short_side = (uint32_t)o->short_side,
                                      .H = (uint32_t)side[0],
                                      .W = (uint32_t)side[1]},
                             .C = channels[o->channels]};
    return bpt_image_fit_check(&fit->size);
}

bpt_status bpt_ingest_quality(const bpt_ingest_options *o, int *quality) {
    *quality = 0;
    if (o->encoded) {
        *quality = o->quality ? (int)o->quality : BPT_INGEST_QUALITY;
        return BPT_OK;
    }
    if (!o->quality) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--quality is not used without --encoded");
    bpt_hint("leave it out: pixels are stored as they are");
    return status;
}

unsigned bpt_ingest_threads(const bpt_ingest_options *o) {
    cpu_set_t cores;
    if (o->threads) return (unsigned)o->threads;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
    const int n = CPU_COUNT(&cores);
    return n < BPT_IMPORT_MAX_THREADS ? (unsigned)n : BPT_IMPORT_MAX_THREADS;
}
