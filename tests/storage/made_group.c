#include "tests/storage/made_group.h"

#include "base/memory.h"

int made_end_group(int failed) {
    return failed ? failed : bpt_memory_live() != 0;
}
