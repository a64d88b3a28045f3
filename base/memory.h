/** @file base/memory.h
 * Memory with a name: aligned, zeroed unless nobody needs it, counted, and able to fail on demand.
 *
 * Threads: every function may be called from any thread at any time, except that
 * bpt_memory_fail_at() is for tests that run one thread. */
#ifndef BPT_BASE_MEMORY_H
#define BPT_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BPT_ALIGNMENT = 64,      /* bytes: a cache line and a 512-bit vector */
    BPT_HUGE_PAGE = 2 << 20, /* bytes */
    BPT_HUGE_FROM = 4 << 20, /* bytes of an allocation that is put in huge pages */
};

/** Multiplies sizes without wrapping round.
 * @return BPT_OK, BPT_ENOMEM (the product does not fit; *product is untouched) */
bpt_status bpt_size_multiply(size_t a, size_t b, size_t *product);

/** @return the sum, or SIZE_MAX where it does not fit: no allocation of that size succeeds */
size_t bpt_size_add(size_t a, size_t b);

/** Allocates @p count elements of @p size bytes, zeroed and aligned to BPT_ALIGNMENT; BPT_HUGE_FROM
 * bytes and more to BPT_HUGE_PAGE, and the system is asked for pages of that size.
 * @param what  what it is for, in the words of an error message ("batch buffer")
 * @param count may be 0: the result is a valid pointer to nothing
 * @param[out] out caller owns, released by bpt_free(); set on success only. Pass `(void **)&p`
 *             through the macro BPT_NEW, which takes the element size from the pointer
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_alloc(const char *what, size_t count, size_t size, void **out);

/** BPT_NEW("name", count, &pointer): bpt_alloc() for elements of the pointer's type. */
#define BPT_NEW(what, count, out) bpt_alloc((what), (count), sizeof **(out), (void **)(out))

/** As bpt_alloc(), but not zeroed: for large buffers of which often just the first part is used,
 * since pages that are never touched cost no memory and no time. The caller reads nothing that it
 * has not written. */
bpt_status bpt_alloc_unset(const char *what, size_t count, size_t size, void **out);

/** BPT_NEW_UNSET("name", count, &pointer): likewise. */
#define BPT_NEW_UNSET(what, count, out)                                                            \
    bpt_alloc_unset((what), (count), sizeof **(out), (void **)(out))

/** Grows an array to at least @p need elements, doubling, and keeps its content; new elements are
 * zero. For growing lists outside of a training step.
 * @param[in,out] array    from one of those above or NULL (then *capacity is 0)
 * @param[in,out] capacity elements
 * @return BPT_OK, BPT_ENOMEM (array and capacity unchanged) */
bpt_status bpt_grow(const char *what, size_t need, size_t size, void **array, size_t *capacity);

#define BPT_GROW(what, need, array, capacity)                                                      \
    bpt_grow((what), (need), sizeof **(array), (void **)(array), (capacity))

/** Copies a string. @return BPT_OK, BPT_ENOMEM; caller owns *out, released by bpt_free() */
bpt_status bpt_strdup(const char *text, char **out);

/** Formats a new string.
 * @param[out] out caller owns, released by bpt_free(); set on success only
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (the C library cannot: more than INT_MAX bytes, or a wide
 *         character that has no bytes in this locale) */
bpt_status bpt_strf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Releases what one of those above gave. NULL is allowed. */
void bpt_free(void *memory);

/** @return how many allocations have been made so far by all threads. Two equal readings around a
 * training step show that it allocated nothing. */
uint64_t bpt_memory_allocations(void);

/** @return allocations not yet freed */
uint64_t bpt_memory_live(void);

/** Lets the C library keep up to 64 MiB of what the process frees, blocks of up to 32 MiB among it,
 * for what it allocates next. For programs whose libraries allocate and free large blocks again and
 * again: memory that is given back has to be fetched anew from the system, page by page. */
void bpt_memory_keep(void);

/** @return bytes of memory that the machine has, or that control groups leave this process of it
 * (base/cgroup.h); SIZE_MAX where the system does not tell */
size_t bpt_memory_of_machine(void);

/** @return what of these bounds it, for a message that goes on with the number: "this machine has"
 * or "a control group leaves" */
const char *bpt_memory_bound(void);

/** Lets the allocation number @p n from now on fail, counted from 0; -1 lets none fail. */
void bpt_memory_fail_at(int64_t n);

#endif
