/** @file tools/train/job/signals.h
 * What the user asked a running job by signal.
 *
 * Threads: handlers may run on any thread; readers on any. */
#ifndef BPT_TOOLS_SIGNALS_H
#define BPT_TOOLS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/** Catches SIGTERM, SIGUSR1, SIGINT (stop with a checkpoint; a second SIGINT ends at once) and
 * SIGHUP (checkpoint and go on). The first two and SIGHUP also where they were ignored, as nohup
 * does: they are sent to this process by somebody who means it, and nothing is lost. Not so SIGINT,
 * which shells ignore for what scripts run in the background, and mpirun never for ranks. What
 * comes before there is a job is remembered for it. To be called by the thread that trains:
 * handlers leave its stack alone. */
void bpt_signals_catch(void);

/** Undoes it, for what has no state to save: the signals act as they did before, and one that was
 * caught meanwhile does so now. */
void bpt_signals_release(void);

/** @return whether the job shall stop */
bool bpt_signals_stop(void);

/** Waits until @p until_ns (bpt_clock_ns()), unless SIGTERM comes meanwhile from the process that
 * started this one, by which mpirun ends the ranks of a job when one has failed. Anybody else's,
 * and one that has come before, ask for no more than the job to stop.
 * @return whether it came */
bool bpt_signals_await_end(uint64_t until_ns);

/** @return whether either is asked for: the end, or a checkpoint that nobody has taken yet */
bool bpt_signals_asked(void);

/** @return BPT_MEET_* bits of the meeting that is asked for; for a checkpoint once per signal */
uint32_t bpt_signals_wants(void);

#endif
