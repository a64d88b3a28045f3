#include "tools/train/signals.h"

#include <signal.h>
#include <unistd.h>

static const int numbers[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static struct sigaction before[N_NUMBERS];
static volatile sig_atomic_t stop_requested; /* by which signal; 0: by none */
static volatile sig_atomic_t checkpoint_requested;

static void on_signal(int number) {
    if (number == SIGHUP) {
        checkpoint_requested = 1;
        return;
    }
    if (number == SIGINT && stop_requested) _exit(130);
    stop_requested = number;
}

/* oneDNN's kernels of matrix products, before 3.11.2, use the stack pointer for an address in the
 * heap: a handler on the stack of the thread that computes would overwrite what lies there. */
static void use_own_stack(void) {
    static _Alignas(64) char memory[1 << 16]; /* a frame with all registers takes about 11 KB */
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    (void)sigaltstack(&stack, NULL); /* fails only where the frame is larger than that */
}

void bpt_signals_catch(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    use_own_stack();
    for (unsigned i = 0; i < N_NUMBERS; i++) sigaction(numbers[i], &action, &before[i]);
}

void bpt_signals_release(void) {
    for (unsigned i = 0; i < N_NUMBERS; i++) sigaction(numbers[i], &before[i], NULL);
    if (stop_requested) raise(stop_requested);
    if (checkpoint_requested) raise(SIGHUP);
}

bool bpt_signals_stop(void) {
    return stop_requested != 0;
}

bool bpt_signals_take_checkpoint(void) {
    if (!checkpoint_requested) return false;
    checkpoint_requested = 0;
    return true;
}
