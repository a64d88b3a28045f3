#include "tools/train/signals.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;
static volatile sig_atomic_t checkpoint_requested;

static void on_signal(int number) {
    if (number == SIGHUP) {
        checkpoint_requested = 1;
        return;
    }
    if (number == SIGINT && stop_requested) _exit(130);
    stop_requested = 1;
}

/* oneDNN's kernels of matrix products, before 3.11.2, use the stack pointer for an address in the
 * heap: a handler on the stack of the thread that computes would overwrite what lies there. */
static void use_own_stack(void) {
    static _Alignas(64) char memory[1 << 16]; /* a frame with all registers takes about 11 KB */
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    (void)sigaltstack(&stack, NULL); /* fails only where the frame is larger than that */
}

void bpt_signals_catch(void) {
    static const int numbers[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    use_own_stack();
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

bool bpt_signals_stop(void) {
    return stop_requested;
}

bool bpt_signals_take_checkpoint(void) {
    if (!checkpoint_requested) return false;
    checkpoint_requested = 0;
    return true;
}
