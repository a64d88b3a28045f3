#include "outer/comm/message_watch.h"

#include "outer/comm/comm_state.h"

void bpt_comm_watch_messages(bpt_comm *comm, bpt_message_note *note, void *arg) {
    const bpt__message_watch watch = {note, arg};
    bpt__comm_copy(comm, &(bpt__copy){&comm->message_watch, &watch, sizeof watch}, 1);
}
