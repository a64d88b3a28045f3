/* alter_entry DATASET KEY FROM TO: made_entry_alter() for scripts. */
#include "tests/storage/made_entry.h"

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    return made_entry_alter(argv[1], argv[2], argv[3], argv[4]) ? 0 : 1;
}
