/** @file inner/step/rectify.h
 * The ReLU's backward pass where another layer does it (inner/models/fusion.c).
 *
 * Threads: bpt_rectify_back() any, on arrays that do not overlap; planning by the one that builds.
 */
#ifndef BPT_INNER_RECTIFY_H
#define BPT_INNER_RECTIFY_H

#include "inner/loops/value_type.h"
#include "inner/step/builder.h"

/** dx = dy where y > 0, else 0. @param y,dy,dx of @p type, shape [n]; dx may be @p dy */
void bpt_rectify_back(const void *y, const void *dy, bpt_value_type type, size_t n, void *dx);

/** Plans where the gradient of the ReLU's input goes: in place of @p out's, unless others read
 * that.
 * @param out what the layer has computed, its gradient planned
 * @param[out] masked its grad; the rest is @p out's
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_rectify_plan(bpt_builder *b, const bpt_activation *out, bpt_activation *masked);

/** Adds the tasks that fill @p masked, and sets its grad_ready. */
bpt_status bpt_rectify_tasks(bpt_builder *b, const char *label, const bpt_activation *out,
                             bpt_activation *masked);

#endif
