/* bpt-eval: accuracy of saved weights on a split. */
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "inner/network/network.h"
#include "tools/device_option.h"
#include "tools/eval/onnx_file.h"
#include "tools/eval/per_class.h"
#include "tools/eval/predictions.h"
#include "tools/eval/trained_on.h"
#include "tools/evaluate.h"
#include "tools/option_aliases.h"
#include "tools/program.h"
#include "tools/saved_weights.h"
#include "tools/shaped_model.h"
#include "tools/split_option.h"
#include "tools/staging.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *data, *stage, *split, *train_data, *train_split, *model, *weights;
    const char *predictions, *onnx; /* NULL: not wanted */
    int64_t batch_size, threads, loader_threads;
    int64_t input_size[2];
    const char *device; /* for bpt_device_option_open() */
    int precision;      /* bpt_precision */
    bool per_class, json;
} eval_options;

#define FIELD(name) offsetof(eval_options, name)

static const bpt_option rows[] = {
    {.name = "data",
     .letter = 'd',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(data),
     .unit = "DATASET",
     .help = "dataset made by bpt-ingest"},
    {.name = "stage",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(stage),
     .unit = "DIR",
     .help = "folder, best on the machine's own disk, to which the dataset is copied\n"
             "first, or where bpt-train has copied it"},
    {.name = "split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(split),
     .value = "test",
     .unit = "NAME",
     .help = "split to evaluate on"},
    {.name = "train-data",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(train_data),
     .unit = "DATASET",
     .help = "dataset that the weights were trained on, where --data is another one:\n"
             "it has --train-split, and the classes; where --data has others there\n"
             "is no accuracy, and --predictions tells what its images are"},
    {.name = "train-split",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(train_split),
     .value = "train",
     .unit = "NAME",
     .help = "split that the weights were trained on: images are normalised by its\n"
             "mean and deviation"},
    {.name = "model",
     .letter = 'm',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(model),
     .unit = "NAME|FILE",
     .help = "built-in model (lenet, resnet50, ...) or a model file (.yaml)"},
    {.name = "weights",
     .letter = 'w',
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(weights),
     .unit = "FILE",
     .help = "weights: RUN/model.safetensors of bpt-train"},
    {.name = "input-size",
     .type = BPT_OPTION_PAIR,
     .offset = FIELD(input_size),
     .min = 0,
     .max = 65536,
     .unit = "H W",
     .help = "of encoded images: height and width that they are brought to, as in\n"
             "training; 0: the model's own input"},
    {.name = "batch-size",
     .letter = 'b',
     .type = BPT_OPTION_INT,
     .offset = FIELD(batch_size),
     .value = "64",
     .min = 1,
     .max = 65536,
     .unit = "SAMPLES",
     .help = "samples at a time: changes speed and memory, and of the result\nat most last digits"},
    {.name = "device",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(device),
     .value = "auto",
     .unit = "auto|cpu|cuda|cuda+cpu",
     .help = "what computes: the processor's cores, or an NVIDIA GPU, of several the\n"
             "first, or the one named as cuda:1; cuda+cpu: both, as is fastest;\n"
             "auto: a GPU if there is one"},
    {.name = "precision",
     .type = BPT_OPTION_CHOICE,
     .offset = FIELD(precision),
     .value = "fp32",
     .choices = BPT_PRECISIONS,
     .help = "what activations are in memory, as for bpt-train; any weights will do"},
    {.name = "threads",
     .letter = 't',
     .type = BPT_OPTION_INT,
     .offset = FIELD(threads),
     .value = "0",
     .min = 0,
     .max = 256,
     .unit = "N",
     .help = "threads; 0: all cores it may use, on a GPU 1"},
    {.name = "loader-threads",
     .type = BPT_OPTION_INT,
     .offset = FIELD(loader_threads),
     .value = "1",
     .min = 1,
     .max = 64,
     .unit = "N",
     .help = "threads that prepare batches"},
    {.name = "per-class",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(per_class),
     .help = "also print the accuracy of each class, and what the others were taken\n"
             "for; computed on the cores, which --device auto takes then; not with\n"
             "--device cuda, nor --precision tf32"},
    {.name = "predictions",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(predictions),
     .unit = "FILE",
     .help = "also write what each sample is taken for, one JSON object a line, in\n"
             "the order of the split; replaces an earlier such file, and no other;\n"
             "computed on the cores, as --per-class"},
    {.name = "onnx",
     .type = BPT_OPTION_TEXT,
     .offset = FIELD(onnx),
     .unit = "FILE",
     .help = "also write the network with its weights as an ONNX model, in floats:\n"
             "from pixels of 0 to 255, [N, channels, height, width], which it\n"
             "normalises itself, to probabilities, [N, classes]; replaces an\n"
             "earlier such file of bpt's, and no other"},
    {.name = "json",
     .type = BPT_OPTION_FLAG,
     .offset = FIELD(json),
     .help = "print one JSON object: accuracy, correct, count, loss; and with\n"
             "--per-class per_class and confusion"},
};

static const bpt_command command = {
    .name = "bpt-eval",
    .synopsis = "--data DATASET --model NAME|FILE --weights FILE [option...]",
    .summary = "Measures loss and accuracy of saved weights on a split of a dataset.",
    .epilogue =
        "exit status: 0 done, 1 run-time failure, 2 wrong usage or configuration, 3 dataset or\n"
        "weights missing or damaged, 4 the loss is not a finite number\n\n"
        "example:\n"
        "  bpt-eval --data fashion --model lenet --weights runs/one/model.safetensors",
    .options = rows,
    .n_options = sizeof rows / sizeof *rows,
    .aliases = bpt_option_aliases,
};

typedef struct {
    bpt_stage *stage; /* NULL: the dataset is read where it is */
    bpt_dataset *dataset;
    bpt_dataset *other; /* that was trained on; NULL: the same one was */
    bool no_labels;     /* its classes are others */
    bpt_model *model;
    bpt_device *device; /* NULL: the processor's cores */
    bpt_pool *pool;
    bpt_network *network;
    float *weights;
    bpt_per_class classes;       /* .confusion: NULL without --per-class */
    bpt_predictions predictions; /* .labels: NULL without --predictions */
    bpt_onnx *onnx;              /* NULL without --onnx */
} parts;

static bpt_dataset *trained_on(const parts *p) {
    return p->other ? p->other : p->dataset;
}

/* @return the option that wants single answers, which the cores alone tell; NULL: none does */
static const char *wants_answers(const eval_options *o) {
    return o->per_class ? "per-class" : o->predictions ? "predictions" : NULL;
}

static const char *device_of(const eval_options *o) {
    return wants_answers(o) && strcmp(o->device, "auto") == 0 ? "cpu" : o->device;
}

static bpt_status check_answers(const eval_options *o) {
    const char *option = wants_answers(o);
    bpt_status status = BPT_OK;
    if (!option) return BPT_OK;
    if (strcmp(device_of(o), "cpu") != 0) {
        status = bpt_fail(BPT_EUSAGE, "--%s is not for --device %s", option, o->device);
        bpt_hint("it is computed on the cores: give --device cpu, or leave --device out");
    } else if (o->precision == BPT_PRECISION_TF32) {
        status = bpt_fail(BPT_EUSAGE, "--%s is not for --precision tf32, which is of GPUs", option);
        bpt_hint("it is computed on the cores: give --precision fp32, or leave --precision out");
    }
    return status;
}

static bpt_status try_files(const eval_options *o) {
    if (o->predictions && o->onnx && strcmp(o->predictions, o->onnx) == 0) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "--predictions and --onnx name the same file: %s", o->onnx);
        bpt_hint("name one for each, such as predictions.jsonl and network.onnx");
        return status;
    }
    if (o->predictions) BPT_TRY(bpt_predictions_try(o->predictions));
    return o->onnx ? bpt_onnx_file_try(o->onnx) : BPT_OK;
}

static bpt_status check(const eval_options *o) {
    const char *missing = !bpt_program_has(o->data)            ? "data"
                          : !bpt_program_has(o->model)         ? "model"
                          : !bpt_program_has(o->weights)       ? "weights"
                          : o->stage && !*o->stage             ? "stage"
                          : o->train_data && !*o->train_data   ? "train-data"
                          : o->predictions && !*o->predictions ? "predictions"
                          : o->onnx && !*o->onnx               ? "onnx"
                                                               : NULL;
    if (!missing) {
        BPT_TRY(check_answers(o));
        BPT_TRY(bpt_device_option_check(device_of(o), (bpt_precision)o->precision));
        return try_files(o);
    }
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s is missing", missing);
    bpt_hint("usage: %s %s", command.name, command.synopsis);
    return status;
}

/* @param batch samples that are computed at a time */
static bpt_status open_network(const eval_options *o, uint32_t batch, parts *p) {
    const bpt_dataset_info *info = bpt_dataset_describe(trained_on(p));
    const bpt_model_override shape = {
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    pool.n_workers =
        bpt_device_option_threads(p->device, (unsigned)o->threads, bpt_pool_allowed_cores());
    BPT_TRY(bpt_model_load(o->model, &shape, &p->model));
    BPT_TRY(BPT_NEW("weights", p->model->segments.n_elements, &p->weights));
    BPT_TRY(bpt_saved_weights_read(o->weights, &p->model->segments, NULL, p->weights, NULL));
    BPT_TRY(bpt_pool_create(&pool, &p->pool));
    BPT_TRY(bpt_network_create_forward_on(
        p->device, p->model, batch, bpt_precision_type((bpt_precision)o->precision, p->device),
        p->pool, &p->network));
    bpt_device_option_say(p->network);
    return bpt_network_set(p->network, BPT_VECTOR_WEIGHTS, p->weights);
}

static bpt_status make_confusion(const char *data, parts *p) {
    const bpt_dataset_info *info = bpt_dataset_describe(p->dataset);
    bpt_per_class *c = &p->classes;
    if (info->n_classes > BPT_PER_CLASS_MOST)
        return bpt_fail(BPT_EUSAGE, "%s has %u classes, --per-class takes up to %d", data,
                        info->n_classes, BPT_PER_CLASS_MOST);
    *c = (bpt_per_class){.n = info->n_classes, .names = info->classes};
    return BPT_NEW("answers by class", (size_t)c->n * c->n, &c->confusion);
}

static bpt_status take_answers(void *arg, const bpt_batch_answers *batch) {
    parts *p = arg;
    if (p->classes.confusion) bpt_per_class_count(&p->classes, batch);
    return p->predictions.labels ? bpt_predictions_add(&p->predictions, batch) : BPT_OK;
}

/* Gets ready for what the options want of single answers. */
static bpt_status ask_for_answers(const eval_options *o, parts *p, bpt_evaluation *e) {
    if (p->no_labels && (o->per_class || !o->predictions)) {
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "the classes of %s are not those of %s: no answer is right or wrong",
            o->data, o->train_data);
        bpt_hint(
            "--predictions without --per-class tells what its images are taken for; or ingest "
            "them with --class-names");
        return status;
    }
    if (!wants_answers(o)) return BPT_OK;
    if (o->per_class) BPT_TRY(make_confusion(o->data, p));
    if (o->predictions) {
        p->predictions.labels = bpt_dataset_describe(p->dataset)->classes;
        p->predictions.classes = bpt_dataset_describe(trained_on(p))->classes;
        p->predictions.no_labels = p->no_labels;
    }
    e->take = take_answers;
    e->take_arg = p;
    return BPT_OK;
}

/* @param split that the network has learnt from */
static bpt_status make_onnx(const eval_options *o, const bpt_split *split, parts *p) {
    const bpt_onnx_origin origin = {.model = p->model,
                                    .weights = p->weights,
                                    .weights_path = o->weights,
                                    .data = p->other ? o->train_data : o->data,
                                    .dataset = trained_on(p),
                                    .split = split};
    return bpt_onnx_file_create(&origin, &p->onnx);
}

static double share_correct(const bpt_batch_result *r) {
    return (double)r->n_correct / (double)r->n_samples;
}

static double mean_loss(const bpt_batch_result *r) {
    return r->loss_sum / (double)r->n_samples;
}

static void print_text(const eval_options *o, const parts *p, const bpt_batch_result *r) {
    if (p->no_labels) {
        printf("%s: %llu images, whose classes are not those of %s\n", o->split,
               (unsigned long long)r->n_samples, o->train_data);
        return;
    }
    printf("%s: accuracy %.4f (%llu of %llu), loss %.4f\n", o->split, share_correct(r),
           (unsigned long long)r->n_correct, (unsigned long long)r->n_samples, mean_loss(r));
    if (p->classes.confusion) bpt_per_class_print(&p->classes);
}

static bpt_status print_json(const parts *p, const bpt_batch_result *r) {
    bpt_json_writer w = {0};
    const char *text;
    size_t length;
    bpt_json_open_object(&w, NULL);
    if (!p->no_labels) {
        bpt_json_put_real(&w, "accuracy", share_correct(r));
        bpt_json_put_u64(&w, "correct", r->n_correct);
    }
    bpt_json_put_u64(&w, "count", r->n_samples);
    if (!p->no_labels) bpt_json_put_real(&w, "loss", mean_loss(r));
    if (p->classes.confusion) bpt_per_class_put(&p->classes, &w);
    bpt_json_close_object(&w);
    const bpt_status status = bpt_json_end_text(&w, &text, &length);
    if (status == BPT_OK) puts(text);
    bpt_json_free(&w);
    return status;
}

static bpt_status open_data(const eval_options *o, parts *p) {
    /* First, so that damage of this one is not blamed on the copy of the other. */
    if (o->train_data && !bpt_dataset_is_same(o->train_data, o->data))
        BPT_TRY(bpt_dataset_open(o->train_data, &p->other));
    if (o->stage) BPT_TRY(bpt_staging_alone(o->data, o->stage, &p->stage));
    const char *path = p->stage ? bpt_stage_path(p->stage) : o->data;
    if (p->other && p->stage && bpt_dataset_is_same(o->train_data, path)) { /* the copy itself */
        bpt_dataset_close(p->other);
        p->other = NULL;
    }
    BPT_TRY(bpt_dataset_open(path, &p->dataset));
    p->no_labels = p->other && !bpt_trained_on_same_classes(p->other, p->dataset);
    return BPT_OK;
}

/* Settles at which size the network takes images. */
static bpt_status fit_data(const eval_options *o, const parts *p) {
    BPT_TRY(bpt_shaped_model_fit(trained_on(p), o->model, o->input_size));
    return p->other ? bpt_trained_on_fit(p->other, p->dataset) : BPT_OK;
}

static bpt_status find_trained_split(const eval_options *o, const parts *p,
                                     const bpt_split **split) {
    const bpt_status status =
        bpt_split_option_find(trained_on(p), "train-split", o->train_split, split);
    if (status != BPT_ENOENT || o->train_data) return status;
    bpt_hint("%s; of another dataset, --train-data names it", bpt_error_last()->hint);
    return status;
}

static bpt_status evaluate(const eval_options *o, parts *p) {
    bpt_evaluation e = {.loader_threads = (uint32_t)o->loader_threads};
    bpt_batch_result result;
    BPT_TRY(bpt_device_option_open(device_of(o), (bpt_precision)o->precision,
                                   (bpt_host_place)BPT_HOST_PLACE_ALONE, &p->device));
    bpt_device_give_images(p->device);
    BPT_TRY(open_data(o, p));
    BPT_TRY(fit_data(o, p));
    e.dataset = p->dataset;
    e.no_labels = p->no_labels;
    BPT_TRY(bpt_split_option_find(p->dataset, "split", o->split, &e.split));
    BPT_TRY(find_trained_split(o, p, &e.normalise));
    if (e.split->count == 0)
        return bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", o->data, o->split);
    e.count = e.split->count;
    e.batch = (uint32_t)o->batch_size < e.count ? (uint32_t)o->batch_size : (uint32_t)e.count;
    BPT_TRY(ask_for_answers(o, p, &e));
    BPT_TRY(open_network(o, e.batch, p));
    if (o->onnx) BPT_TRY(make_onnx(o, e.normalise, p));
    BPT_TRY(bpt_evaluate(p->network, &e, &result));
    if (o->json)
        BPT_TRY(print_json(p, &result));
    else
        print_text(o, p, &result);
    /* Last: a full disk does not take the result away. */
    if (o->predictions) BPT_TRY(bpt_predictions_write(&p->predictions, o->predictions));
    return p->onnx ? bpt_onnx_file_write(p->onnx, o->onnx) : BPT_OK;
}

static bpt_status run(int argc, char **argv, bpt_option_set **set) {
    eval_options options = {0};
    bpt_option_request request;
    BPT_TRY(bpt_options_parse(&command, argc, argv, &options, &request, set));
    if (request != BPT_REQUEST_RUN) return BPT_OK;
    BPT_TRY(check(&options));
    parts p = {0};
    bpt_status status = evaluate(&options, &p); /* sets p.stage */
    status = bpt_staging_blame(p.stage, status);
    bpt_network_free(p.network);
    bpt_device_close(p.device);
    bpt_pool_free(p.pool);
    bpt_model_free(p.model);
    bpt_dataset_close(p.other);
    bpt_dataset_close(p.dataset);
    bpt_stage_close(p.stage);
    bpt_free(p.weights);
    bpt_free(p.classes.confusion);
    bpt_predictions_free(&p.predictions);
    bpt_onnx_free(p.onnx);
    return status;
}

int main(int argc, char **argv) {
    bpt_option_set *set = NULL;
    bpt_program_begin();
    if (argc == 1) {
        bpt_options_help(&command, stdout);
        return bpt_program_no_arguments("bpt-eval");
    }
    const int exit_status = bpt_program_end("bpt-eval", run(argc, argv, &set));
    bpt_option_set_free(set);
    return exit_status;
}
