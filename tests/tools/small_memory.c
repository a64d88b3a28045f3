/* For LD_PRELOAD: a machine with as many bytes of memory as BPT_TEST_MEMORY says, as far as
 * sysconf() does. */
#include <stdlib.h>
#include <unistd.h>

long __sysconf(int name); /* the C library's own name of it */

long sysconf(int name) {
    const char *bytes = getenv("BPT_TEST_MEMORY");
    if (name != _SC_PHYS_PAGES || !bytes) return __sysconf(name);
    return atol(bytes) / __sysconf(_SC_PAGESIZE);
}
