/* Activations whose channels lie in blocks of lanes (bpt_layout_lanes()). */
#include "inner/step/builder.h"

static bpt_status layout_of(bpt_builder *b, bpt_shape s, bpt_value_type type, size_t t,
                            int64_t lanes, const bpt_layout **out) {
    const int64_t dims[] = {bpt_builder_tile_samples(b, t), s.c, s.h, s.w};
    return bpt_layout_of_lanes(b->cpu, type, dims, lanes, out);
}

bpt_status bpt_builder_choose_lanes(bpt_builder *b, const bpt_activation *in,
                                    const int64_t *channels, size_t n_channels, int64_t *lanes) {
    const bpt_shape s = in->shape;
    const int64_t dims[] = {bpt_builder_tile_samples(b, 0), s.c, s.h, s.w};
    BPT_TRY(bpt_layout_lanes(b->cpu, in->layout[0], dims, lanes));
    if (*lanes != 8 && *lanes != 16) *lanes = 1;
    for (size_t i = 0; i < n_channels; i++)
        if (channels[i] % *lanes != 0) *lanes = 1;
    return BPT_OK;
}

bpt_status bpt_builder_convert_to_lanes(bpt_builder *b, const char *label, const bpt_activation *in,
                                        bpt_value_type type, int64_t lanes, bpt_activation *out) {
    const bpt_layout *layouts[BPT_MAX_TILES];
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(layout_of(b, in->shape, type, t, lanes, &layouts[t]));
    return bpt_builder_convert(b, label, in, layouts, out);
}

bpt_status bpt_builder_reserve_lanes(bpt_builder *b, bpt_shape shape, bpt_value_type type,
                                     int64_t lanes, bool wants_grad, bpt_activation *out) {
    if (lanes == 1) return bpt_builder_plain(b, shape, type, wants_grad, out);
    *out = (bpt_activation){.shape = shape, .wants_grad = wants_grad};
    for (size_t t = 0; t < b->n_tiles; t++)
        BPT_TRY(layout_of(b, shape, type, t, lanes, &out->layout[t]));
    return bpt_builder_reserve(b, out);
}
