/** @file base/thread.h
 * How threads are started: signals are for a program's first thread.
 *
 * Threads: any. */
#ifndef BPT_BASE_THREAD_H
#define BPT_BASE_THREAD_H

#include <pthread.h>

/** Starts a thread in which all signals are blocked, but for those that a fault of the thread
 * itself raises: handlers must see these (a debugger's, a sanitizer's, that of a mapped file that
 * was cut short), and blocked they would end the process.
 * @param[out] thread to be joined
 * @return 0, or an errno as pthread_create() gives it */
int bpt_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
