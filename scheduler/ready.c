#include "scheduler/ready.h"

#include <stddef.h>

bpt__task *bpt__heap_meld(bpt__task *a, bpt__task *b) {
    if (!a) return b;
    if (!b) return a;
    bpt__task *const first = bpt__task_precedes(a, b) ? a : b;
    bpt__task *const second = first == a ? b : a;
    second->sibling = first->child;
    first->child = second;
    return first;
}

/* Melds neighbours pairwise, then the pairs from last to first: the two passes that give pop its
 * amortised logarithmic cost. */
static bpt__task *meld_siblings(bpt__task *first) {
    bpt__task *pairs = NULL;
    while (first) {
        bpt__task *const a = first;
        bpt__task *const b = a->sibling;
        first = b ? b->sibling : NULL;
        bpt__task *const pair = bpt__heap_meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    bpt__task *heap = NULL;
    while (pairs) {
        bpt__task *const pair = pairs;
        pairs = pair->sibling;
        pair->sibling = NULL;
        heap = bpt__heap_meld(heap, pair);
    }
    return heap;
}

bpt__task *bpt__heap_pop(bpt__task **heap) {
    bpt__task *const first = *heap;
    *heap = meld_siblings(first->child);
    first->child = NULL;
    return first;
}

static void publish(bpt__ready *ready) {
    atomic_store(&ready->best, ready->heap ? ready->heap->key : 0);
}

void bpt__ready_push(bpt__ready *ready, bpt__task *heap) {
    pthread_mutex_lock(&ready->lock);
    ready->heap = bpt__heap_meld(ready->heap, heap);
    publish(ready);
    pthread_mutex_unlock(&ready->lock);
}

bpt__task *bpt__ready_pop(bpt__ready *ready) {
    if (atomic_load(&ready->best) == 0) return NULL;
    pthread_mutex_lock(&ready->lock);
    bpt__task *const task = ready->heap ? bpt__heap_pop(&ready->heap) : NULL;
    publish(ready);
    pthread_mutex_unlock(&ready->lock);
    return task;
}

bpt__task *bpt__ready_exchange(bpt__ready *ready, bpt__task *task) {
    /* Only the owner adds tasks (but for ends of events), so the look without the lock is good. */
    if (atomic_load(&ready->best) < task->key) return task;
    pthread_mutex_lock(&ready->lock);
    ready->heap = bpt__heap_meld(ready->heap, task);
    bpt__task *const first = bpt__heap_pop(&ready->heap);
    publish(ready);
    pthread_mutex_unlock(&ready->lock);
    return first;
}
