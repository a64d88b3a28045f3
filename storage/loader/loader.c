/* A ring of slots. A slot goes round: free, requested, being filled, ready, lent, free.
 * The consumer's thread requests, takes and releases; a filling thread takes the oldest requested
 * slot, fills it without the lock, and marks it ready. Slots are taken in the order of their
 * requests: batch number i always lives in slot i % depth. */
#include "storage/loader/loader.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "storage/loader/normalise.h"
#include "storage/loader/pass_image.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_THREADS = 64, MAX_DEPTH = 1024 };

typedef enum slot_state {
    SLOT_FREE,
    SLOT_REQUESTED,
    SLOT_FILLING,
    SLOT_READY,
    SLOT_LENT
} slot_state;

typedef struct slot {
    slot_state state;
    uint32_t n;
    uint32_t *indices;      /* shape [batch] */
    uint32_t *passes;       /* shape [batch] */
    float *pixels;          /* shape [batch, C, H, W]; NULL where batches are of bytes */
    uint8_t *bytes;         /* likewise; NULL where they are of floats */
    bpt_image_move *moves;  /* shape [batch], of bytes; NULL: none is left to make */
    bpt_images images;      /* of bytes and moves, as lent */
    int32_t *labels;        /* shape [batch] */
    int32_t *second_labels; /* shape [batch]; NULL where no images are mixed */
    float *second_parts;    /* likewise */
    bpt_error error;        /* status BPT_OK unless filling failed */
} slot;

/* A filling thread and what it alone writes. */
typedef struct filler {
    bpt_loader *loader;
    pthread_t thread;
    bpt__image_scratch scratch;
} filler;

struct bpt_loader {
    bpt__pass_images images;
    uint32_t batch, depth;
    size_t plane;          /* H*W */
    float *scale, *shift;  /* pixel -> pixel * scale + shift, shape [C] */
    uint32_t *all_indices; /* shape [depth, batch]; slots point into these */
    uint32_t *all_passes;
    float *all_pixels;
    uint8_t *all_bytes;
    bpt_image_move *all_moves;
    int32_t *all_labels;
    int32_t *all_second_labels;
    float *all_second_parts;
    uint8_t *all_scratch; /* shape [threads, scratch_images(), C,H,W]; fillers point into these */
    uint8_t *all_decoded; /* shape [threads,C,H,W] */
    filler fillers[MAX_THREADS];
    uint32_t n_threads; /* started */
    uint64_t taken;     /* count of batches taken, the consumer's alone */
    uint64_t wait_ns;   /* likewise */

    pthread_mutex_t mutex; /* guards what follows; the only lock */
    pthread_cond_t work;   /* a slot was requested, or stop */
    pthread_cond_t ready;  /* a slot became ready */
    slot *slots;           /* shape [depth]; contents belong to whom the state says */
    uint64_t requested;    /* count of batches requested */
    uint64_t begun;        /* count of batches that threads have begun to fill */
    bool stop;
};

/* @return images that a thread has room for, beside decoded ones */
static size_t scratch_images(const bpt_augment *a) {
    return (a->n > 0 ? 2 : 0) + (bpt_augment_mixes(a) ? 1 : 0);
}

/* ---- filling ---- */

/* Such images are gone from the caches until their batch is used. */
enum { LARGE_IMAGE = 1 << 16 }; /* values */

static void normalise(const bpt_loader *l, const uint8_t *pixels, float *out) {
    const bool past_caches = l->images.C * l->plane >= LARGE_IMAGE;
    for (uint32_t c = 0; c < l->images.C; c++)
        bpt__normalise(pixels + c * l->plane, l->plane, l->scale[c], l->shift[c], past_caches,
                       out + c * l->plane);
}

static void put_image(const bpt_loader *l, slot *s, uint32_t i, const bpt__pass_image *image) {
    const size_t record = l->images.C * l->plane;
    if (s->pixels) normalise(l, image->pixels, s->pixels + i * record);
    if (s->bytes) memcpy(s->bytes + i * record, image->pixels, record);
    if (s->moves) s->moves[i] = image->move;
}

/* The rest of a batch that is not full. Of bytes it is known by how many images there are. */
static void put_none(const bpt_loader *l, slot *s) {
    const size_t record = l->images.C * l->plane;
    if (s->pixels)
        memset(s->pixels + s->n * record, 0, (l->batch - s->n) * record * sizeof *s->pixels);
    s->images.n = s->n;
}

/* Tells the system which records a batch is made from. */
static void expect(const bpt_loader *l, const slot *s) {
    const bpt__pass_images *p = &l->images;
    bpt_dataset_expect(p->dataset, p->split, s->indices, s->n);
    for (uint32_t i = 0; s->second_labels && i < s->n; i++) {
        const uint32_t partner = bpt__pass_image_partner(p, s->indices[i], s->passes[i]);
        bpt_dataset_expect(p->dataset, p->split, &partner, 1);
    }
}

static void put_labels(slot *s, uint32_t i, int32_t label, int32_t second, float part) {
    s->labels[i] = label;
    if (!s->second_labels) return;
    s->second_labels[i] = second;
    s->second_parts[i] = part;
}

static bpt_status fill(const filler *f, slot *s) {
    const bpt_loader *l = f->loader;
    expect(l, s);
    for (uint32_t i = 0; i < s->n; i++) {
        bpt__pass_image image;
        BPT_TRY(bpt__pass_image_make(&l->images, &f->scratch, s->indices[i], s->passes[i], &image));
        put_image(l, s, i, &image);
        put_labels(s, i, (int32_t)image.label, image.second_label, image.second_part);
    }
    BPT_TRY(bpt_dataset_check(l->images.dataset)); /* pixels were read after they were verified */
    put_none(l, s);
    for (uint32_t i = s->n; i < l->batch; i++) put_labels(s, i, -1, -1, 0);
    return BPT_OK;
}

static void *fill_slots(void *arg) {
    const filler *f = arg;
    bpt_loader *l = f->loader;
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (!l->stop && l->begun == l->requested) pthread_cond_wait(&l->work, &l->mutex);
        if (l->stop) break;
        slot *s = &l->slots[l->begun++ % l->depth];
        s->state = SLOT_FILLING;
        pthread_mutex_unlock(&l->mutex);
        s->error.status = BPT_OK;
        if (fill(f, s) != BPT_OK) bpt_error_get(&s->error);
        pthread_mutex_lock(&l->mutex);
        s->state = SLOT_READY;
        pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* ---- begin and end ---- */

static bpt_status check_options(const bpt_loader_options *o) {
    if (o->batch == 0) return bpt_fail(BPT_EUSAGE, "a batch of 0 images cannot be loaded");
    if (o->n_threads == 0 || o->n_threads > MAX_THREADS)
        return bpt_fail(BPT_EUSAGE, "%u loader threads: must be 1 to %d", o->n_threads,
                        MAX_THREADS);
    if (o->depth == 0 || o->depth > MAX_DEPTH)
        return bpt_fail(BPT_EUSAGE, "%u batches ahead: must be 1 to %d", o->depth, MAX_DEPTH);
    return BPT_OK;
}

static bpt_status check_partners(const bpt_split *split, const bpt_loader_options *o) {
    if (!bpt_augment_mixes(&o->augment) || !o->partners) return BPT_OK;
    if (o->n_partners == 0) return bpt_fail(BPT_EUSAGE, "there is no image to mix others with");
    for (uint32_t i = 0; i < o->n_partners; i++)
        if (o->partners[i] >= split->count)
            return bpt_fail(BPT_EUSAGE, "image %u is to be mixed with others, split %s has %u",
                            o->partners[i], split->name, split->count);
    return BPT_OK;
}

void bpt_loader_scales(const double *mean, const double *std, uint32_t n, float *scale,
                       float *shift) {
    for (uint32_t c = 0; c < n; c++) {
        const double middle = mean ? mean[c] : 0;
        const double deviation = std && std[c] != 0 ? std[c] : 1;
        scale[c] = (float)(1 / (255 * deviation));
        shift[c] = (float)(-middle / deviation);
    }
}

/* What belongs to slot number @p i. */
static void make_slot(const bpt_loader *l, uint32_t i, slot *s) {
    const size_t first = (size_t)i * l->batch, record = l->images.C * l->plane;
    *s = (slot){
        .indices = l->all_indices + first,
        .passes = l->all_passes + first,
        .labels = l->all_labels + first,
        .pixels = l->all_pixels ? l->all_pixels + first * record : NULL,
        .bytes = l->all_bytes ? l->all_bytes + first * record : NULL,
        .moves = l->all_moves ? l->all_moves + first : NULL,
        .second_labels = l->all_second_labels ? l->all_second_labels + first : NULL,
        .second_parts = l->all_second_parts ? l->all_second_parts + first : NULL,
    };
    s->images = (bpt_images){s->bytes, s->moves, l->scale, l->shift, 0};
}

static bpt_status allocate_images(bpt_loader *l, const bpt_loader_options *o, size_t entries) {
    size_t pixels;
    BPT_TRY(bpt_size_multiply(entries, l->images.C * l->plane, &pixels));
    if (!o->as_images) return BPT_NEW("batch buffers", pixels, &l->all_pixels);
    if (l->images.leaves_moves) BPT_TRY(BPT_NEW("moves of images", entries, &l->all_moves));
    return BPT_NEW("batch buffers", pixels, &l->all_bytes);
}

static bpt_status allocate_scratch(bpt_loader *l, const bpt_loader_options *o) {
    const size_t record = l->images.C * l->plane;
    const size_t n = o->n_threads * scratch_images(&o->augment);
    if (n > 0) BPT_TRY(BPT_NEW("augmented images", n * record, &l->all_scratch));
    if (!l->images.encoded) return BPT_OK;
    return BPT_NEW("decoded images", o->n_threads * record, &l->all_decoded);
}

static bpt_status allocate(bpt_loader *l, const bpt_loader_options *o) {
    size_t entries;
    BPT_TRY(bpt_size_multiply(o->depth, o->batch, &entries));
    BPT_TRY(BPT_NEW("loader slots", o->depth, &l->slots));
    BPT_TRY(BPT_NEW("batch indices", entries, &l->all_indices));
    BPT_TRY(BPT_NEW("batch passes", entries, &l->all_passes));
    BPT_TRY(BPT_NEW("batch labels", entries, &l->all_labels));
    BPT_TRY(allocate_images(l, o, entries));
    BPT_TRY(BPT_NEW("pixel scales", l->images.C, &l->scale));
    BPT_TRY(BPT_NEW("pixel shifts", l->images.C, &l->shift));
    if (bpt_augment_mixes(&o->augment)) {
        BPT_TRY(BPT_NEW("second labels", entries, &l->all_second_labels));
        BPT_TRY(BPT_NEW("parts of second labels", entries, &l->all_second_parts));
    }
    BPT_TRY(allocate_scratch(l, o));
    bpt_loader_scales(o->mean, o->std, l->images.C, l->scale, l->shift);
    for (uint32_t i = 0; i < o->depth; i++) make_slot(l, i, &l->slots[i]);
    return BPT_OK;
}

/* @return bytes that go with each image of a batch beside its pixels */
static size_t entry_bytes(const bpt_loader_options *o) {
    size_t bytes = sizeof(int32_t) + 2 * sizeof(uint32_t); /* label, index, pass */
    if (bpt_augment_mixes(&o->augment)) bytes += sizeof(int32_t) + sizeof(float);
    if (o->as_images && bpt_augment_ends_in_moves(&o->augment)) bytes += sizeof(bpt_image_move);
    return bytes;
}

size_t bpt_loader_bytes(const bpt_loader_options *o, size_t values) {
    const size_t entries = (size_t)o->depth * o->batch;
    const size_t n_images = o->n_threads * scratch_images(&o->augment);
    size_t bytes, scratch;
    if (__builtin_mul_overflow(values, o->as_images ? 1 : sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, entry_bytes(o), &bytes) ||
        __builtin_mul_overflow(bytes, entries, &bytes) ||
        __builtin_mul_overflow(values, n_images, &scratch) ||
        __builtin_add_overflow(bytes, scratch, &bytes))
        return SIZE_MAX;
    return bytes;
}

size_t bpt_loader_decoding_bytes(const bpt_split *split, uint32_t n_threads, size_t values) {
    /* of a pixel: 4 decoded, 8 of coefficients (storage/images/image.h) */
    size_t bytes;
    if (split->extent.most_pixels == 0) return 0;
    if (__builtin_mul_overflow(split->extent.most_pixels, 4 + 8, &bytes) ||
        __builtin_add_overflow(bytes, values, &bytes) ||
        __builtin_mul_overflow(bytes, n_threads, &bytes))
        return SIZE_MAX;
    return bytes;
}

static bpt_status start_threads(bpt_loader *l, uint32_t n) {
    while (l->n_threads < n) {
        filler *f = &l->fillers[l->n_threads];
        const size_t before = l->n_threads * l->images.C * l->plane;
        f->loader = l;
        if (l->all_scratch)
            f->scratch.augmented = l->all_scratch + scratch_images(&l->images.augment) * before;
        if (l->all_second_labels)
            f->scratch.mixed = f->scratch.augmented + 2 * l->images.C * l->plane;
        if (l->images.encoded) {
            f->scratch.decoded = l->all_decoded + before;
            BPT_TRY(bpt_image_decoder_open(NULL, &f->scratch.decoder));
        }
        const int code = bpt_thread_start(&f->thread, fill_slots, f);
        if (code != 0) return bpt_fail_errno(code, "start", "a loader thread");
        l->n_threads++;
    }
    return BPT_OK;
}

static bpt_status check_augment(const bpt_dataset_info *info, const bpt_augment *a) {
    if (info->H == 0)
        return bpt_fail(BPT_EUSAGE, "at which size are the images of %s wanted?", info->path);
    return bpt_augment_check_images(a, info->encoded, info->H, info->W);
}

bpt_status bpt_loader_create(const bpt_dataset *dataset, const bpt_split *split,
                             const bpt_loader_options *options, bpt_loader **out) {
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    BPT_TRY(check_options(options));
    BPT_TRY(check_partners(split, options));
    BPT_TRY(check_augment(info, &options->augment));
    bpt_loader *l;
    BPT_TRY(BPT_NEW("loader", 1, &l));
    l->images = (bpt__pass_images){.dataset = dataset,
                                   .split = split,
                                   .C = info->C,
                                   .H = info->H,
                                   .W = info->W,
                                   .encoded = info->encoded,
                                   .augment = options->augment,
                                   .leaves_moves = options->as_images &&
                                                   bpt_augment_ends_in_moves(&options->augment),
                                   .seed = options->seed,
                                   .partners = options->partners,
                                   .n_partners = options->n_partners};
    l->batch = options->batch;
    l->depth = options->depth;
    l->plane = (size_t)info->H * info->W;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    bpt_status status;
    BPT_TRY_GOTO(status, allocate(l, options), fail);
    BPT_TRY_GOTO(status, start_threads(l, options->n_threads), fail);
    *out = l;
    return BPT_OK;
fail:
    bpt_loader_destroy(l);
    return status;
}

void bpt_loader_destroy(bpt_loader *l) {
    if (!l) return;
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
    for (uint32_t i = 0; i < l->n_threads; i++) pthread_join(l->fillers[i].thread, NULL);
    for (uint32_t i = 0; i < MAX_THREADS; i++)
        bpt_image_decoder_close(l->fillers[i].scratch.decoder);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->mutex);
    bpt_free(l->slots);
    bpt_free(l->all_indices);
    bpt_free(l->all_passes);
    bpt_free(l->all_labels);
    bpt_free(l->all_second_labels);
    bpt_free(l->all_second_parts);
    bpt_free(l->all_scratch);
    bpt_free(l->all_decoded);
    bpt_free(l->all_pixels);
    bpt_free(l->all_bytes);
    bpt_free(l->all_moves);
    bpt_free(l->scale);
    bpt_free(l->shift);
    bpt_free(l);
}

/* ---- the consumer ---- */

bpt_status bpt_loader_request(bpt_loader *l, const uint32_t *indices, const uint32_t *passes,
                              uint32_t n) {
    if (n == 0 || n > l->batch)
        return bpt_fail(BPT_EUSAGE, "a batch of %u images was requested, it takes 1 to %u", n,
                        l->batch);
    for (uint32_t i = 0; i < n; i++)
        if (indices[i] >= l->images.split->count)
            return bpt_fail(BPT_EUSAGE, "image %u was requested, split %s has %u", indices[i],
                            l->images.split->name, l->images.split->count);
    bpt_status status = BPT_OK;
    pthread_mutex_lock(&l->mutex);
    slot *s = &l->slots[l->requested % l->depth];
    if (s->state == SLOT_FREE) {
        memcpy(s->indices, indices, n * sizeof *indices);
        if (passes)
            memcpy(s->passes, passes, n * sizeof *passes);
        else
            memset(s->passes, 0, n * sizeof *s->passes);
        s->n = n;
        s->state = SLOT_REQUESTED;
        l->requested++;
        pthread_cond_signal(&l->work);
    } else {
        status = bpt_fail(BPT_EFULL, "%u batches are requested or lent already", l->depth);
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

uint32_t bpt_loader_room(bpt_loader *l) {
    uint32_t n = 0;
    pthread_mutex_lock(&l->mutex);
    while (n < l->depth && l->slots[(l->requested + n) % l->depth].state == SLOT_FREE) n++;
    pthread_mutex_unlock(&l->mutex);
    return n;
}

static const void *input_of(const slot *s) {
    return s->pixels ? (const void *)s->pixels : &s->images;
}

bpt_status bpt_loader_next(bpt_loader *l, bpt_batch *batch) {
    bpt_status status = BPT_OK;
    pthread_mutex_lock(&l->mutex);
    if (l->taken == l->requested) {
        status = bpt_fail(BPT_EUSAGE, "a batch was asked for, but none is requested");
        goto done;
    }
    const uint32_t number = (uint32_t)(l->taken % l->depth);
    slot *s = &l->slots[number];
    if (s->state != SLOT_READY) {
        const uint64_t start = bpt_clock_ns();
        while (s->state != SLOT_READY) pthread_cond_wait(&l->ready, &l->mutex);
        l->wait_ns += bpt_clock_ns() - start;
    }
    l->taken++;
    if (s->error.status != BPT_OK) {
        status = bpt_error_put(&s->error);
        s->state = SLOT_FREE;
        goto done;
    }
    s->state = SLOT_LENT;
    *batch = (bpt_batch){.input = input_of(s),
                         .pixels = s->pixels,
                         .labels = s->labels,
                         .second_labels = s->second_labels,
                         .second_parts = s->second_parts,
                         .n = s->n,
                         .slot = number};
done:
    pthread_mutex_unlock(&l->mutex);
    return status;
}

const void *bpt_loader_peek(bpt_loader *l) {
    const void *input = NULL;
    pthread_mutex_lock(&l->mutex);
    const slot *s = &l->slots[l->taken % l->depth];
    if (l->taken != l->requested && s->state == SLOT_READY && s->error.status == BPT_OK)
        input = input_of(s);
    pthread_mutex_unlock(&l->mutex);
    return input;
}

void bpt_loader_release(bpt_loader *l, const bpt_batch *batch) {
    pthread_mutex_lock(&l->mutex);
    l->slots[batch->slot].state = SLOT_FREE;
    pthread_mutex_unlock(&l->mutex);
}

uint64_t bpt_loader_wait_ns(const bpt_loader *l) {
    return l->wait_ns;
}
