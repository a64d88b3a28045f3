/* What the MPI thread does for a relay. */
#include "base/memory.h"
#include "outer/placement/relay_state.h"

enum { UP_TAG = BPT__TAG_RELAY, DOWN_TAG };

enum { UP_MESSAGES = 3, DOWN_MESSAGES = 2 }; /* header, labels, values; header, gradient */

/* ---- sizes ---- */

static size_t labels_bytes(const bpt_relay *r, uint32_t worker) {
    return r->samples[worker] * sizeof(int32_t);
}

bpt_status bpt__relay_transfers(bpt_relay *r) {
    size_t *room = NULL;
    BPT_TRY(BPT_NEW("room for messages", bpt__relay_groups(r), &room));
    if (r->rank != r->server) room[r->m] = UP_MESSAGES + DOWN_MESSAGES;
    for (uint32_t w = 0; w < r->m; w++)
        if (r->rank == r->server && w != r->rank)
            room[w] = UP_MESSAGES; /* or its answer, by turns */
    const bpt_status status =
        bpt__comm_transfers(r->comm, room, bpt__relay_groups(r), &r->transfers);
    bpt_free(room);
    return status;
}

/* ---- messages ---- */

static bpt_status listen_to(bpt_relay *r, uint32_t w) {
    bpt__relay_slot *slot = &r->slots[w];
    bpt__transfers *t = r->transfers;
    BPT_TRY(bpt__transfers_recv(t, w, &slot->up, sizeof slot->up, w, UP_TAG));
    BPT_TRY(bpt__transfers_recv(t, w, slot->labels, labels_bytes(r, w), w, UP_TAG));
    return bpt__transfers_recv(t, w, slot->values, bpt__relay_values_bytes(r, w), w, UP_TAG);
}

/* Receives first, so that no answer finds nobody waiting for it. */
static bpt_status post_own(bpt_relay *r) {
    const size_t bytes = bpt__relay_values_bytes(r, r->rank);
    bpt__transfers *t = r->transfers;
    const uint32_t to = r->server, g = r->m;
    BPT_TRY(bpt__transfers_recv(t, g, &r->down, sizeof r->down, to, DOWN_TAG));
    BPT_TRY(bpt__transfers_recv(t, g, r->gradient, bytes, to, DOWN_TAG));
    BPT_TRY(bpt__transfers_send(t, g, &r->up, sizeof r->up, to, UP_TAG));
    BPT_TRY(bpt__transfers_send(t, g, r->labels, labels_bytes(r, r->rank), to, UP_TAG));
    return bpt__transfers_send(t, g, r->values, bytes, to, UP_TAG);
}

/* The gradient may be where the batch was: the next is listened for when the answer has left. */
static bpt_status post_answer(bpt_relay *r, uint32_t w) {
    bpt__relay_slot *slot = &r->slots[w];
    bpt__transfers *t = r->transfers;
    BPT_TRY(bpt__transfers_send(t, w, &slot->down, sizeof slot->down, w, DOWN_TAG));
    return bpt__transfers_send(t, w, slot->gradient, bpt__relay_values_bytes(r, w), w, DOWN_TAG);
}

/* ---- what is to be done ---- */

static bool takes_own(bpt_relay *r) {
    if (r->rank == r->server || r->posted) return false;
    pthread_mutex_lock(&r->mutex);
    r->posted = r->phase == BPT__RELAY_SENT;
    pthread_mutex_unlock(&r->mutex);
    return r->posted;
}

/* @return whether worker @p w is to be sent an answer now */
static bool takes_answer(bpt_relay *r, uint32_t w) {
    bpt__relay_slot *slot = &r->slots[w];
    pthread_mutex_lock(&r->mutex);
    const bool takes = slot->state == BPT__RELAY_SLOT_ANSWERED;
    if (takes) slot->state = BPT__RELAY_SLOT_SENDING;
    pthread_mutex_unlock(&r->mutex);
    return takes;
}

static bpt_status begin(bpt_relay *r, bool *moved) {
    if (takes_own(r)) {
        BPT_TRY(post_own(r));
        *moved = true;
    }
    for (uint32_t w = 0; r->rank == r->server && w < r->m; w++) {
        if (!takes_answer(r, w)) continue;
        BPT_TRY(post_answer(r, w));
        *moved = true;
    }
    return BPT_OK;
}

/* ---- what is done; mutex held ---- */

static void complete_own(bpt_relay *r) {
    const size_t values = bpt__relay_values_bytes(r, r->rank);
    r->stats.batches++;
    r->stats.payload_sent_bytes += values + labels_bytes(r, r->rank);
    r->stats.payload_received_bytes += values;
    r->stats.header_sent_bytes += sizeof r->up;
    r->stats.header_received_bytes += sizeof r->down;
    r->posted = false;
    r->phase = BPT__RELAY_ANSWERED;
}

static void complete_arrival(bpt_relay *r, uint32_t w) {
    r->stats.payload_received_bytes += bpt__relay_values_bytes(r, w) + labels_bytes(r, w);
    r->stats.header_received_bytes += sizeof(bpt__relay_up);
    bpt__relay_arrive(r, w);
}

static void complete_answer(bpt_relay *r, uint32_t w) {
    bpt__relay_slot *slot = &r->slots[w];
    r->stats.payload_sent_bytes += bpt__relay_values_bytes(r, w);
    r->stats.header_sent_bytes += sizeof slot->down;
    slot->state = BPT__RELAY_SLOT_LISTENS;
}

/* @return whether the group is of a worker that is to be listened to now */
static bool complete_group(bpt_relay *r, uint32_t g) {
    pthread_mutex_lock(&r->mutex);
    const bool sent = g < r->m && r->slots[g].state == BPT__RELAY_SLOT_SENDING;
    if (g == r->m)
        complete_own(r);
    else if (sent)
        complete_answer(r, g);
    else
        complete_arrival(r, g);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    return sent;
}

static bool is_over(bpt_relay *r) {
    pthread_mutex_lock(&r->mutex);
    bool over = r->ending;
    for (uint32_t w = 0; over && r->rank == r->server && w < r->m; w++)
        over = r->slots[w].state == BPT__RELAY_SLOT_LISTENS;
    pthread_mutex_unlock(&r->mutex);
    return over;
}

static bpt_status listen_to_all(bpt_relay *r) {
    for (uint32_t w = 0; r->rank == r->server && w < r->m; w++)
        if (w != r->rank) BPT_TRY(listen_to(r, w));
    r->listens = true;
    return BPT_OK;
}

static bpt_status serve(bpt_relay *r, bool *moved, bool *done) {
    uint32_t n = 0;
    if (!r->listens) BPT_TRY(listen_to_all(r));
    BPT_TRY(begin(r, moved));
    bool parts_move = false;
    BPT_TRY(bpt__transfers_poll(r->transfers, &parts_move, r->complete, &n));
    if (parts_move) bpt__comm_wait_moves(r->comm);
    *moved = *moved || parts_move;
    for (uint32_t i = 0; i < n; i++)
        if (complete_group(r, r->complete[i])) BPT_TRY(listen_to(r, r->complete[i]));
    if (!is_over(r)) return BPT_OK;
    bpt__transfers_cancel(r->transfers);
    *done = true;
    return BPT_OK;
}

bpt_status bpt__relay_poll(bpt__job *job, bool *moved, bool *done) {
    bpt_relay *r = (bpt_relay *)job;
    const bpt_status status = serve(r, moved, done);
    if (status == BPT_OK) return BPT_OK;
    pthread_mutex_lock(&r->mutex);
    bpt_error_get(&r->error);
    r->failed = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    return status;
}
