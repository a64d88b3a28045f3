/** @file base/thread_signals.h
 * Signals are for a program's first thread: what to block while others are started.
 *
 * Threads: any. */
#ifndef BPT_BASE_THREAD_SIGNALS_H
#define BPT_BASE_THREAD_SIGNALS_H

#include <signal.h>

/** Blocks all signals in this thread, and so in those that it starts, but for those that a fault of
 * the thread itself raises: handlers must see these (a debugger's, a sanitizer's, that of a mapped
 * file that was cut short), and blocked they would end the process.
 * @param[out] before for pthread_sigmask(SIG_SETMASK) when the threads are started */
void bpt_thread_block_signals(sigset_t *before);

#endif
