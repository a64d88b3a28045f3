#include "base/clock.h"

uint64_t bpt_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct timespec bpt_clock_timespec(uint64_t ns) {
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
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
