/* Runs a program with oneDNN kept to an instruction set:
 *
 *   with_isa SSE41|AVX|AVX2|AVX512_CORE PROGRAM [ARGUMENT...]
 *
 * Exit status: the program's; 77 where this processor has no more than the set, so that the program
 * does without what it would do with it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name; /* in oneDNN's words */
    bool has_more;
} isa;

static bool has_more_than(const char *name) {
#if defined(__x86_64__)
    const isa sets[] = {
        {"SSE41", __builtin_cpu_supports("avx")},
        {"AVX", __builtin_cpu_supports("avx2")},
        {"AVX2", __builtin_cpu_supports("avx512bw")},
        {"AVX512_CORE", __builtin_cpu_supports("avx512bf16")},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i].name, name) == 0) return sets[i].has_more;
#endif
    (void)name;
    return false;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: with_isa SSE41|AVX|AVX2|AVX512_CORE PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (!has_more_than(argv[1])) {
        printf("skipped: this processor has no more than %s\n", argv[1]);
        return 77;
    }
    if (setenv("ONEDNN_MAX_CPU_ISA", argv[1], 1) == 0) execv(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
