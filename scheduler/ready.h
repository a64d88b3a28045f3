/** @file scheduler/ready.h
 * The tasks that one worker may start, greatest key first, lower id first among equals.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) whose links lie in the tasks: it needs
 * no memory and has no capacity, and a whole heap is added in constant time.
 *
 * Threads: bpt__ready_* may be called from any thread; bpt__heap_* on heaps that no other sees. */
#ifndef BPT_SCHEDULER_READY_H
#define BPT_SCHEDULER_READY_H

#include "scheduler/graph_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** @return whether @p a runs before @p b: tasks of one graph lie in the order of their ids */
static inline bool bpt__task_precedes(const bpt__task *a, const bpt__task *b) {
    return a->key != b->key ? a->key > b->key : a < b;
}

/** Joins two heaps (a single task is one; NULL is the empty one). @return the joint heap */
bpt__task *bpt__heap_meld(bpt__task *a, bpt__task *b);

/** Takes the first task out of a heap that is not empty. */
bpt__task *bpt__heap_pop(bpt__task **heap);

typedef struct bpt__ready {
    pthread_mutex_t lock; /* guards heap */
    bpt__task *heap;
    /* Key of the first task, 0 if there is none. Written under the lock and read without it, in
     * sequential order, since a worker decides by it whether to sleep (bpt__worker_sleep()). */
    _Atomic uint64_t best;
} bpt__ready;

/** Adds all tasks of a heap. */
void bpt__ready_push(bpt__ready *ready, bpt__task *heap);

/** @return the first task, taken out; NULL if there is none */
bpt__task *bpt__ready_pop(bpt__ready *ready);

/** @return the first of @p task and the tasks in the queue; the others are in the queue then */
bpt__task *bpt__ready_exchange(bpt__ready *ready, bpt__task *task);

#endif
