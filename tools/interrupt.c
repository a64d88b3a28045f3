#include "tools/interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

void bpt_interrupt_own_stack(void) {
    static _Alignas(64) char memory[1 << 16]; /* a frame with all registers takes about 11 KB */
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    (void)sigaltstack(&stack, NULL); /* fails only where the frame is larger than that */
}

/* What was ignored before stays so: a shell starts commands in the background with SIGINT ignored,
 * and nohup with SIGHUP. */
static void catch_unless_ignored(int number, const struct sigaction *action) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(number, action, NULL);
}

void bpt_interrupt_catch(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    bpt_interrupt_own_stack();
    catch_unless_ignored(SIGINT, &action);
    catch_unless_ignored(SIGTERM, &action);
    catch_unless_ignored(SIGHUP, &action); /* the terminal is gone */
}

bpt_status bpt_interrupt_write(const char *path, const void *data, size_t size) {
    return bpt_interrupt_write_parts(path, &(bpt_bytes){data, size}, 1);
}

bpt_status bpt_interrupt_write_parts(const char *path, const bpt_bytes *parts, size_t n_parts) {
    bpt_interrupt_catch();
    return bpt_file_write_parts(path, parts, n_parts);
}

bpt_status bpt_interrupt_check(const char *outcome, const char *hint) {
    if (!caught) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_ECANCELED, "stopped by %s before the end: %s", strsignal(caught), outcome);
    bpt_hint("%s", hint);
    return status;
}
