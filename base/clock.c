#include "base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bpt_clock_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t bpt_clock_thread_cpu_ns(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double bpt_clock_seconds_since(uint64_t since_ns) {
    return (double)(bpt_clock_ns() - since_ns) * 1e-9;
}

void bpt_clock_utc(char *text, size_t size) {
    const time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts);
}
