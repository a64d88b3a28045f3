/* All of the file, with its functions under other names. */
#define BPT_PLAIN_LOOPS
#define bpt__columns_fill   plain_columns_fill
#define bpt__columns_clear  plain_columns_clear
#define bpt__resize_columns plain_resize_columns
#include "tests/storage/plain_columns.h"

#include "storage/images/resize_columns.c"
