/* Augmented images have the same bytes on every machine and with every compiler: runs could not be
 * repeated elsewhere else. Their checksums are kept here. */
#include "base/checksum.h"
#include "tests/storage/augment_subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { H = 27, W = 35, SIZE = 3 * H * W, N_DRAWS = 300 };

/* @return the checksum of many images, one after another, of three channels and of one */
static uint64_t checksum_of(const char *list) {
    static uint8_t in[SIZE], scratch[2 * SIZE], all[2 * N_DRAWS][SIZE];
    const bpt_augment a = subject_list(list);
    memset(all, 0, sizeof all);
    for (uint64_t id = 0; id < N_DRAWS; id++) {
        subject_noise(id, in, SIZE);
        memcpy(all[2 * id], subject_apply(&a, id, 3, H, W, in, scratch), SIZE);
        memcpy(all[2 * id + 1], subject_apply(&a, id, 1, H, W, in, scratch), H * W);
    }
    return bpt_checksum(all, sizeof all);
}

static void gives_the_same_bytes_everywhere(void **state) {
    (void)state;
    const struct {
        const char *list;
        uint64_t checksum;
    } kept[] = {
        {"crop=4,flip", 0x4da2f21235b7cc77},
        {"crop=7", 0x35281855f77c0368},
        {"resized-crop", 0x251e55a485e61db0},
        {"resized-crop=0.2:0.6:0.3", 0x16d6dd8dddc1f917},
        {"vflip", 0xda6eb10dfb1c7a1a},
        {"rotate=15", 0x182511619e4c2c57},
        {"rotate=180", 0x15ea2217b71fe0a0},
        {"shift=12.5", 0xbfbdf369917dc96d},
        {"jitter", 0xa214dd9098f27df2},
        {"jitter=0.1:0.9:1", 0x42a847c30cd69d4d},
        {"erase", 0x9cd68abef340f493},
        {"erase=1:0.1:0.9:0.1", 0xa2f20664d865cc83},
        {"resized-crop,flip,vflip,rotate=10,shift=5,jitter,erase,crop=2", 0x76c471a9453e0488},
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const uint64_t found = checksum_of(kept[i].list);
        if (found != kept[i].checksum)
            fail_msg("%s: 0x%016llx", kept[i].list, (unsigned long long)found);
    }
}

/* @return the checksum of many mixtures, and of the parts that they are */
static uint64_t checksum_of_mixtures(const char *list) {
    static uint8_t other[SIZE], all[N_DRAWS][SIZE];
    static float parts[N_DRAWS];
    const bpt_augment a = subject_list(list);
    for (uint64_t id = 0; id < N_DRAWS; id++) {
        bpt_random random = subject_stream(id);
        subject_noise(2 * id, all[id], SIZE);
        subject_noise(2 * id + 1, other, SIZE);
        parts[id] = bpt_augment_mix(&a, &random, 3, H, W, all[id], other);
    }
    return bpt_checksum(all, sizeof all) ^ bpt_checksum(parts, sizeof parts);
}

static void mixes_to_the_same_bytes_everywhere(void **state) {
    (void)state;
    const struct {
        const char *list;
        uint64_t checksum;
    } kept[] = {
        {"mixup=0.2", 0xf230465f9ae54e53},          {"mixup=8", 0xd3bc978ef87d54c1},
        {"cutmix=1", 0x0e90fabfaa0f486e},           {"cutmix=0.3", 0x14549a8101f50076},
        {"mixup=0.8,cutmix=1", 0x283769338087204f},
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const uint64_t found = checksum_of_mixtures(kept[i].list);
        if (found != kept[i].checksum)
            fail_msg("%s: 0x%016llx", kept[i].list, (unsigned long long)found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_the_same_bytes_everywhere),
                                       cmocka_unit_test(mixes_to_the_same_bytes_everywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
