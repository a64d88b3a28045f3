#include "tools/train/job/signals.h"

#include "base/clock.h"
#include "outer/exchange/coordinator.h"
#include "tools/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static const int numbers[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static struct sigaction before[N_NUMBERS];
/* Handlers may write them on one thread while another one reads; they order no other data, so that
 * relaxed accesses do. Without locks a handler may interrupt an access. */
static atomic_int stop_requested; /* by which signal; 0: by none */
static atomic_bool interrupted;   /* by SIGINT, which the second time ends the process */
static atomic_bool checkpoint_requested;
static atomic_bool ended; /* by the launcher, since somebody waits for it */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2, "safe in a handler");

static int stop_signal(void) {
    return atomic_load_explicit(&stop_requested, memory_order_relaxed);
}

/* @return whether one was asked for that nobody has taken yet */
static bool take_checkpoint(void) {
    return atomic_exchange_explicit(&checkpoint_requested, false, memory_order_relaxed);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    if (number == SIGTERM && info->si_pid == getppid())
        atomic_store_explicit(&ended, true, memory_order_relaxed);
    if (number == SIGHUP) {
        atomic_store_explicit(&checkpoint_requested, true, memory_order_relaxed);
        return;
    }
    if (number == SIGINT && atomic_exchange_explicit(&interrupted, true, memory_order_relaxed))
        _exit(130);
    atomic_store_explicit(&stop_requested, number, memory_order_relaxed);
}

void bpt_signals_catch(void) {
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    bpt_interrupt_own_stack();
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        sigaction(numbers[i], NULL, &before[i]);
        /* A script's Ctrl-C is not meant for what it runs in the background. */
        if (numbers[i] == SIGINT && before[i].sa_handler == SIG_IGN) continue;
        sigaction(numbers[i], &action, NULL);
    }
}

void bpt_signals_release(void) {
    for (unsigned i = 0; i < N_NUMBERS; i++) sigaction(numbers[i], &before[i], NULL);
    if (stop_signal()) raise(stop_signal());
    if (take_checkpoint()) raise(SIGHUP);
}

bool bpt_signals_stop(void) {
    return stop_signal() != 0;
}

bool bpt_signals_await_end(uint64_t until_ns) {
    const struct timespec until = bpt_clock_timespec(until_ns);
    bool is_over = false;
    atomic_store_explicit(&ended, false, memory_order_relaxed);
    while (!is_over && !atomic_load_explicit(&ended, memory_order_relaxed))
        is_over = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != EINTR;
    /* Of other threads it interrupts no sleep, nor does one that came just before. */
    return atomic_load_explicit(&ended, memory_order_relaxed);
}

bool bpt_signals_asked(void) {
    return bpt_signals_stop() || atomic_load_explicit(&checkpoint_requested, memory_order_relaxed);
}

uint32_t bpt_signals_wants(void) {
    uint32_t wants = 0;
    if (bpt_signals_stop()) wants |= BPT_MEET_STOP;
    if (take_checkpoint()) wants |= BPT_MEET_CHECKPOINT;
    return wants;
}
