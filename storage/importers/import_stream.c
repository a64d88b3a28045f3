/* A ring of batches of items. A worker takes the next batch of the ring when it is free, lets the
 * importer name its items (one worker at a time), makes their pictures without the lock, and marks
 * it ready; the consumer delivers the batches in order. Batch number i is in place i % n_places of
 * the ring while it is in flight; then its memory goes to the next that is begun, since what was
 * used last is in the caches: a consumer that keeps up sees little more memory than a batch a
 * thread.
 *
 * How many items make a batch depends on how large the pictures were so far: small ones are handed
 * over by the dozen, or waking each other would cost more than the work. */
#include "storage/importers/import_stream.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "storage/importers/import_encoded.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum {
    MAX_BATCH = 64,
    BATCH_BYTES = 1 << 20,
    BATCHES_PER_THREAD = 3, /* always: one at work, one ready, one on its way */
    BATCHES_AHEAD = 48,     /* where memory allows: the consumer may pause for a flush to disk */
    AHEAD_BYTES = 48 << 20,
};

/* An item and what became of it. */
typedef struct cell {
    bpt_import_item item;
    bpt__picture picture;
    uint32_t label;
    bool broken_off; /* the source could not be read: the importer's next() or check() failed */
    bpt_error error; /* .status BPT_OK: a picture */
} cell;

typedef struct batch {
    cell *cells; /* shape [MAX_BATCH] */
    uint32_t n;
    bool ready;
} batch;

/* A worker and what it alone uses. */
typedef struct worker {
    bpt_import_stream *stream;
    pthread_t thread;
    bpt_import_buffer buffer; /* for load() */
    bpt__picture_maker *maker;
    bpt__file_maker *file_maker; /* NULL: pictures are pixels */
} worker;

struct bpt_import_stream {
    const bpt_importer *importer;
    void *import;
    uint64_t count; /* items */
    bpt_picture_fit fit;
    worker *workers; /* shape [n_workers] */
    unsigned n_workers, n_started;
    batch *batches; /* shape [n_places] */
    uint64_t n_places;

    /* the consumer's alone */
    uint32_t C, H, W;          /* what all records have; 0: not known yet */
    batch *current;            /* under delivery; NULL: none */
    uint32_t next_cell;        /* of it */
    bpt_import_buffer widened; /* a grey image as a colour one */

    pthread_mutex_t mutex; /* guards what follows, and .ready of batches; the only lock */
    batch **ring;          /* shape [n_places]; those in flight */
    batch **idle;          /* shape [n_places]; the others, a stack of n_idle */
    uint64_t n_idle;
    pthread_cond_t work;  /* a batch was delivered, or its items are named, or stop */
    pthread_cond_t ready; /* a batch is ready */
    bool naming;          /* a worker lets the importer name items */
    bool ended;           /* there are no more */
    bool stop;
    uint64_t begun, delivered; /* batches */
    uint64_t named;            /* items */
    size_t largest;            /* picture so far, bytes */
};

/* ---- workers ---- */

static bool is_bad_item(bpt_status status) {
    return status == BPT_EDATA || status == BPT_ENOENT || status == BPT_ECORRUPT;
}

/* Lets the importer name the items of a batch. @return whether there will be more */
static bool name_items(const bpt_import_stream *s, batch *b, uint32_t n) {
    for (b->n = 0; b->n < n;) {
        cell *c = &b->cells[b->n++];
        c->error.status = BPT_OK;
        c->broken_off = s->importer->next(s->import, &c->item) != BPT_OK;
        if (!c->broken_off) continue;
        bpt_error_get(&c->error);
        return false;
    }
    return true;
}

static bpt_status make(worker *w, cell *c) {
    const bpt_import_stream *s = w->stream;
    bpt_import_image image;
    BPT_TRY(s->importer->load(s->import, &c->item, &w->buffer, &image));
    char name[BPT_IMPORT_NAME_SIZE];
    s->importer->describe(s->import, &c->item, name, sizeof name);
    c->label = image.label;
    return w->file_maker ? bpt__file_make(w->file_maker, &s->fit, name, &image, &c->picture)
                         : bpt__picture_make(w->maker, &s->fit, name, &image, &c->picture);
}

/* @return bytes of the largest picture */
static size_t make_batch(worker *w, batch *b) {
    size_t largest = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        cell *c = &b->cells[i];
        if (c->broken_off) continue;
        bpt_status status = make(w, c);
        if (w->stream->importer->check) {
            const bpt_status checked = w->stream->importer->check(w->stream->import);
            c->broken_off = checked != BPT_OK;
            if (c->broken_off) status = checked;
        }
        if (status != BPT_OK) {
            bpt_error_get(&c->error);
            continue;
        }
        const bpt__picture *p = &c->picture;
        const size_t bytes = p->file.size ? p->file.size : (size_t)p->C * p->H * p->W;
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

static uint32_t batch_size(const bpt_import_stream *s) {
    const uint64_t left = s->count - s->named;
    const size_t fitting = s->largest ? BATCH_BYTES / s->largest : 1;
    const uint64_t n = fitting == 0 ? 1 : fitting > MAX_BATCH ? MAX_BATCH : fitting;
    return (uint32_t)(n < left ? n : left);
}

static bool can_begin(const bpt_import_stream *s) {
    const uint64_t n = s->begun - s->delivered; /* batches in flight */
    if (s->naming || s->ended || n >= s->n_places) return false;
    if (n < (uint64_t)BATCHES_PER_THREAD * s->n_workers) return true;
    const uint64_t bytes = s->largest > BATCH_BYTES ? s->largest : BATCH_BYTES;
    return s->largest > 0 && (n + 1) * bytes <= AHEAD_BYTES;
}

static void *work(void *arg) {
    worker *w = arg;
    bpt_import_stream *s = w->stream;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (!s->stop && !can_begin(s)) pthread_cond_wait(&s->work, &s->mutex);
        if (s->stop) break;
        batch *b = s->idle[--s->n_idle];
        s->ring[s->begun++ % s->n_places] = b;
        const uint32_t n = batch_size(s);
        s->naming = true;
        pthread_mutex_unlock(&s->mutex);
        const bool more = name_items(s, b, n);
        pthread_mutex_lock(&s->mutex);
        s->naming = false;
        s->named += b->n;
        s->ended = !more || s->named == s->count;
        pthread_cond_signal(&s->work);
        pthread_mutex_unlock(&s->mutex);
        const size_t largest = make_batch(w, b);
        pthread_mutex_lock(&s->mutex);
        if (largest > s->largest) s->largest = largest;
        b->ready = true;
        pthread_cond_signal(&s->ready);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- the consumer ---- */

/* Whether the next batch to deliver is. */
static bool is_ready(const bpt_import_stream *s) {
    return s->delivered < s->begun && s->ring[s->delivered % s->n_places]->ready;
}

/* @return the cell to deliver, once its batch is ready */
static cell *await_cell(bpt_import_stream *s) {
    pthread_mutex_lock(&s->mutex);
    if (s->current && s->next_cell == s->current->n) { /* the last one has been seen */
        s->current->ready = false;
        s->idle[s->n_idle++] = s->current;
        s->current = NULL;
        s->delivered++;
        pthread_cond_signal(&s->work);
    }
    if (!s->current) {
        while (!is_ready(s)) pthread_cond_wait(&s->ready, &s->mutex);
        s->current = s->ring[s->delivered % s->n_places];
        s->next_cell = 0;
    }
    pthread_mutex_unlock(&s->mutex);
    return &s->current->cells[s->next_cell++];
}

static void item_name(const bpt_import_stream *s, const cell *c, char *name, size_t size) {
    s->importer->describe(s->import, &c->item, name, size);
}

static bpt_status other_size(const bpt_import_stream *s, const cell *c) {
    char name[BPT_IMPORT_NAME_SIZE];
    item_name(s, c, name, sizeof name);
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s has %ux%u pixels (HxW), the images before it have %ux%u", name,
                 c->picture.H, c->picture.W, s->H, s->W);
    bpt_hint("--resize H W, or --short-side S with --crop H W, brings all images to one size");
    return status;
}

/* @param first nothing but the dataset can be what it differs from */
static bpt_status other_colour(const bpt_import_stream *s, const cell *c, bool first) {
    char name[BPT_IMPORT_NAME_SIZE];
    item_name(s, c, name, sizeof name);
    const bpt_status status =
        bpt_fail(BPT_EDATA, "%s has %u channels, %s have %u", name, c->picture.C,
                 first ? "the images of the dataset" : "the images before it", s->C);
    bpt_hint("--channels 1 makes all images grey, --channels 3 makes all of them colour images");
    return status;
}

/* Makes three equal channels of one. */
static bpt_status widen(bpt_import_stream *s, const cell *c) {
    const size_t plane = (size_t)c->picture.H * c->picture.W;
    BPT_TRY(BPT_GROW("image", 3 * plane, &s->widened.bytes, &s->widened.capacity));
    for (size_t i = 0; i < 3; i++)
        memcpy(s->widened.bytes + i * plane, c->picture.pixels.bytes, plane);
    return BPT_OK;
}

/* Files have sizes of their own. */
static bpt_status agree_on_file(const bpt_import_stream *s, const cell *c, bool first,
                                bpt_import_record *record) {
    record->file = c->picture.file;
    record->C = s->C;
    if (c->picture.C == s->C) return BPT_OK;
    if (c->picture.C != 1 || s->C != 3) return other_colour(s, c, first);
    bpt_record_widen(&record->file);
    return BPT_OK;
}

/* Sees to it that all records have one shape: that of the first. */
static bpt_status agree(bpt_import_stream *s, const cell *c, bpt_import_record *record) {
    const bool first = s->H == 0;
    if (first) {
        if (s->C == 0) s->C = c->picture.C;
        s->H = c->picture.H;
        s->W = c->picture.W;
    }
    if (c->picture.file.size) return agree_on_file(s, c, first, record);
    if (c->picture.H != s->H || c->picture.W != s->W) return other_size(s, c);
    record->pixels = c->picture.pixels.bytes;
    if (c->picture.C != s->C) {
        if (c->picture.C != 1 || s->C != 3) return other_colour(s, c, first);
        BPT_TRY(widen(s, c));
        record->pixels = s->widened.bytes;
    }
    record->C = s->C;
    record->H = s->H;
    record->W = s->W;
    return BPT_OK;
}

bpt_status bpt_import_stream_next(bpt_import_stream *s, bpt_import_record *record) {
    const cell *c = await_cell(s);
    *record = (bpt_import_record){.number = c->item.number, .label = c->label};
    if (c->error.status == BPT_OK) return agree(s, c, record);
    if (c->broken_off || !is_bad_item(c->error.status)) return bpt_error_put(&c->error);
    record->error = &c->error;
    return BPT_OK;
}

/* ---- begin and end ---- */

static bpt_status allocate(bpt_import_stream *s, const bpt_import_stream_options *o) {
    s->n_workers = o->n_threads;
    s->n_places = (uint64_t)BATCHES_PER_THREAD * o->n_threads;
    if (s->n_places < BATCHES_AHEAD) s->n_places = BATCHES_AHEAD;
    BPT_TRY(BPT_NEW("import threads", s->n_workers, &s->workers));
    BPT_TRY(BPT_NEW("import batches", s->n_places, &s->batches));
    BPT_TRY(bpt_alloc("import ring", s->n_places, sizeof *s->ring, (void **)&s->ring));
    BPT_TRY(bpt_alloc("idle batches", s->n_places, sizeof *s->idle, (void **)&s->idle));
    for (uint64_t i = 0; i < s->n_places; i++) {
        BPT_TRY(BPT_NEW("import batch", MAX_BATCH, &s->batches[i].cells));
        s->idle[s->n_idle++] = &s->batches[i];
    }
    for (unsigned i = 0; i < s->n_workers; i++) {
        s->workers[i].stream = s;
        BPT_TRY(o->quality ? bpt__file_maker_create(o->quality, &s->workers[i].file_maker)
                           : bpt__picture_maker_create(&s->workers[i].maker));
    }
    return BPT_OK;
}

static bpt_status check_unchanged(const bpt_import_stream *s, const bpt_import_item *item,
                                  const struct timespec *since) {
    struct timespec when;
    if (!s->importer->changed || !s->importer->changed(s->import, item, &when)) return BPT_OK;
    if (when.tv_sec < since->tv_sec ||
        (when.tv_sec == since->tv_sec && when.tv_nsec <= since->tv_nsec))
        return BPT_OK;
    char name[BPT_IMPORT_NAME_SIZE];
    s->importer->describe(s->import, item, name, sizeof name);
    const bpt_status status = bpt_fail(
        BPT_EDATA,
        "%s is stored, and was changed after that ingestion had begun (it, or its name, owner "
        "or rights)",
        name);
    bpt_hint("leave out --resume to begin anew: what is there of it is dropped then");
    return status;
}

/* Lets the importer name the items that are done with. */
static bpt_status pass_over(bpt_import_stream *s, uint64_t n, const struct timespec *since) {
    bpt_import_item item = {0};
    bpt_status status = BPT_OK;
    for (; s->named < n && status == BPT_OK; s->named++) {
        status = s->importer->next(s->import, &item);
        if (status == BPT_OK) status = check_unchanged(s, &item, since);
    }
    bpt_free(item.owned.bytes);
    return status;
}

static bpt_status start(bpt_import_stream *s) {
    for (; s->n_started < s->n_workers; s->n_started++) {
        worker *w = &s->workers[s->n_started];
        const int code = bpt_thread_start(&w->thread, work, w);
        if (code != 0 && s->n_started == 0)
            return bpt_fail_errno(code, "start", "a thread that reads images");
        if (code != 0) break; /* fewer do as well, only not as fast */
    }
    return BPT_OK;
}

bpt_status bpt_import_stream_open(const bpt_importer *importer, void *import,
                                  const bpt_import_plan *plan,
                                  const bpt_import_stream_options *options,
                                  bpt_import_stream **out) {
    if (options->begin > plan->count)
        return bpt_fail(BPT_EUSAGE, "%llu items of %llu are done with",
                        (unsigned long long)options->begin, (unsigned long long)plan->count);
    if (options->n_threads == 0 || options->n_threads > BPT_IMPORT_MAX_THREADS)
        return bpt_fail(BPT_EUSAGE, "%u threads that read images: must be 1 to %d",
                        options->n_threads, BPT_IMPORT_MAX_THREADS);
    bpt_import_stream *s;
    BPT_TRY(BPT_NEW("import stream", 1, &s));
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->ready, NULL);
    s->importer = importer;
    s->import = import;
    s->count = plan->count;
    s->fit = options->fit;
    s->C = options->C;
    s->H = options->H;
    s->W = options->W;
    s->largest = (size_t)plan->C * plan->H * plan->W;
    bpt_status status = pass_over(s, options->begin, &options->since);
    s->ended = s->named >= s->count;
    if (status == BPT_OK) status = allocate(s, options);
    if (status == BPT_OK) status = start(s);
    if (status == BPT_OK)
        *out = s;
    else
        bpt_import_stream_close(s);
    return status;
}

static void free_batches(bpt_import_stream *s) {
    for (uint64_t i = 0; s->batches && i < s->n_places; i++) {
        cell *cells = s->batches[i].cells;
        for (uint32_t k = 0; cells && k < MAX_BATCH; k++) {
            bpt_free(cells[k].item.owned.bytes);
            bpt_free(cells[k].picture.pixels.bytes);
        }
        bpt_free(cells);
    }
    bpt_free(s->batches);
    bpt_free(s->ring);
    bpt_free(s->idle);
}

void bpt_import_stream_close(bpt_import_stream *s) {
    if (!s) return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
    for (unsigned i = 0; i < s->n_started; i++) pthread_join(s->workers[i].thread, NULL);
    for (unsigned i = 0; s->workers && i < s->n_workers; i++) {
        bpt__picture_maker_free(s->workers[i].maker);
        bpt__file_maker_free(s->workers[i].file_maker);
        bpt_free(s->workers[i].buffer.bytes);
    }
    bpt_free(s->workers);
    free_batches(s);
    bpt_free(s->widened.bytes);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->ready);
    pthread_mutex_destroy(&s->mutex);
    bpt_free(s);
}
