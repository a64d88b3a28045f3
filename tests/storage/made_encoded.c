#include "tests/storage/made_encoded.h"

#include "base/memory.h"
#include "storage/images/image_decoder.h"
#include "tests/storage/made_images.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bpt_status status) {
    if (status == BPT_OK) return;
    fprintf(stderr, "made_encoded: %s\n", bpt_error_last()->text);
    exit(1);
}

uint32_t made_encoded_H(uint32_t i) {
    return i % 5 == 4 ? 64 : 40 + i * 37 % 100;
}

uint32_t made_encoded_W(uint32_t i) {
    return i % 5 == 4 ? 64 : 40 + i * 53 % 100;
}

static uint8_t *planes_of(uint32_t i, uint32_t C, uint32_t H, uint32_t W) {
    const size_t plane = (size_t)H * W;
    uint8_t *packed = malloc(plane * C), *planes = malloc(plane * C);
    if (!packed || !planes) exit(1);
    made_picture(packed, H, W, C);
    for (size_t p = 0; p < plane; p++)
        for (size_t c = 0; c < C; c++) planes[c * plane + p] = (uint8_t)(packed[p * C + c] + 9 * i);
    free(packed);
    return planes;
}

bpt_record made_encoded_record(uint32_t i, uint32_t C, bpt_image_file *file) {
    bpt_record r = {.H = made_encoded_H(i), .W = made_encoded_W(i)};
    uint8_t *pixels = planes_of(i, C, r.H, r.W);
    bpt_image_encoder *encoder;
    bpt_image_decoder *decoder;
    must(bpt_image_encoder_open(&encoder));
    must(bpt_image_decoder_open(NULL, &decoder));
    must(bpt_image_encode_jpeg(encoder, pixels, C, r.H, r.W, 90,
                               i % 2 ? BPT_JPEG_420 : BPT_JPEG_444, file));
    const bpt_image_fit as_is = {0};
    const bpt_image_wish wish = {.frame = bpt_image_fit_frame(&as_is, r.H, r.W), .C = C};
    must(bpt_image_decode(decoder, "made", file->data, file->size, &wish, pixels));
    r.data = file->data;
    r.size = file->size;
    bpt_record_measure(&r, pixels, C);
    bpt_image_encoder_close(encoder);
    bpt_image_decoder_close(decoder);
    free(pixels);
    return r;
}

bpt_writer_options made_encoded_options(const char *split, uint32_t C) {
    return (bpt_writer_options){
        .split = split, .encoded = true, .C = C, .n_classes = 3, .importer = "test"};
}

bpt_status made_encoded_range(const char *path, const bpt_writer_options *o, uint32_t from,
                              uint32_t to) {
    bpt_writer *writer;
    bpt_image_file file = {0};
    BPT_TRY(bpt_writer_open(path, o, &writer));
    bpt_status status = BPT_OK;
    for (uint32_t i = from; i < to && status == BPT_OK; i++) {
        const bpt_record record = made_encoded_record(i, o->C, &file);
        status = bpt_writer_append_record(writer, &record, i % 3);
    }
    if (status == BPT_OK) status = bpt_writer_commit(writer);
    bpt_writer_close(writer);
    bpt_free(file.data);
    return status;
}

bpt_status made_encoded_split(const char *path, const bpt_writer_options *o, uint32_t n) {
    return made_encoded_range(path, o, 0, n);
}
