/** @file storage/dataset/record_decode.h
 * Pixels of the records of encoded datasets.
 *
 * Threads: as storage/images/image_decoder.h: a decoder belongs to one thread at a time. */
#ifndef BPT_STORAGE_RECORD_DECODE_H
#define BPT_STORAGE_RECORD_DECODE_H

#include "storage/dataset/dataset.h"
#include "storage/images/image_decoder.h"

/** The part of an image that fills H by W with as little of it lost as can be: the image gets the
 * smallest size, its ratio kept, that covers H by W, and of that the middle is kept.
 * @param record_H, record_W of the image
 * @param H, W 1 to BPT_IMAGE_MAX_SIDE */
bpt_image_frame bpt_record_middle(uint32_t record_H, uint32_t record_W, uint32_t H, uint32_t W);

/** Decodes the file of a record of any bytes.
 * @param C, frame, pixels as of bpt_record_decode()
 * @return BPT_OK, BPT_EDATA (no sound JPEG, or none of the record's size), BPT_EUSAGE
 *         (bpt_image_frame_check()), BPT_ENOMEM */
bpt_status bpt__record_decode_file(bpt_image_decoder *decoder, uint32_t C, const bpt_record *record,
                                   const bpt_image_frame *frame, uint8_t *pixels);

/** Decodes a record.
 * @param i      its number in @p split, for messages
 * @param record of bpt_dataset_get_record()
 * @param frame  for an image of record->H by record->W; where what it takes is much larger than
 *               what becomes of it, the file is decoded at a half, a quarter or an eighth of its
 *               size (bpt_image_wish.near)
 * @param[out] pixels shape [C,frame->H,frame->W], C that of the dataset
 * @return BPT_OK, BPT_ECORRUPT (its file is no sound JPEG, or none of such a size; names split and
 *         record), BPT_EUSAGE (bpt_image_frame_check()), BPT_ENOMEM */
bpt_status bpt_record_decode(bpt_image_decoder *decoder, const bpt_dataset *dataset,
                             const bpt_split *split, uint32_t i, const bpt_record *record,
                             const bpt_image_frame *frame, uint8_t *pixels);

#endif
