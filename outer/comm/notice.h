/** @file outer/comm/notice.h
 * A word that reaches every rank whatever it is at: that one of them was told to stop.
 *
 * What a report wants is heard where ranks exchange (outer/exchange/coordinator.h), and one that
 * evaluates for minutes does not. This calls no meeting and ends nothing: who hears it ends what
 * would hold one up.
 *
 * Threads: any. */
#ifndef BPT_OUTER_NOTICE_H
#define BPT_OUTER_NOTICE_H

#include "outer/comm/comm.h"

#include <stdbool.h>

/** From then on @p told is asked four times a second, and once it says yes all ranks hear of it.
 * Every rank of the job calls this once, before anything that it would end.
 * @param told whether this rank was told to stop, for good; on any thread, and may not wait */
void bpt_comm_pass_stop(bpt_comm *comm, bool (*told)(void));

/** @return whether this rank was told to stop, or has heard that another one was: within half a
 * second where both run. Without bpt_comm_pass_stop() never */
bool bpt_comm_stop_told(const bpt_comm *comm);

#endif
