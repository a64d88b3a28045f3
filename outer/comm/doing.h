/** @file outer/comm/doing.h
 * Inside of outer/: what a rank can be at, as far as the watch tells it apart. No MPI:
 * outer/comm/stall.h has rules about it. */
#ifndef BPT_OUTER_DOING_H
#define BPT_OUTER_DOING_H

enum { BPT__HOST_SIZE = 64 };

/** What a rank is at: its own work, an operation that may hang, a wait for other ranks, nothing but
 * to serve those. */
enum bpt__doing { BPT__BUSY, BPT__OWN, BPT__WAITS, BPT__IDLES };

#endif
