#include "tests/inner/gradient_cases.h"

#define MODEL(input, classes, layers)                                                              \
    "{name: t, input: " input ", classes: " classes ", layers: [" layers "]}"
#define TO_CLASSES "fc: {outputs: classes}"

/* Names say what is special. Few layers each: with every layer there are more values that lie
 * within rounding error of a kink (ReLU at 0, two equal values in a window). */
const gradient_case gradient_cases[] = {
    {.name = "fc alone", .text = MODEL("[1, 1, 13]", "3", TO_CLASSES)},
    {.name = "fc of an image, without bias",
     .text = MODEL("[3, 5, 7]", "17", "fc: {outputs: classes, bias: false}")},
    {.name = "fc in several pieces",
     .text = MODEL("[2, 9, 11]", "5",
                   "fc: {name: a, outputs: 150}, relu, fc: {name: b, outputs: 70, bias: false}, "
                   "relu, fc: {name: c, outputs: classes}"),
     .small = MODEL("[1, 3, 5]", "5",
                    "fc: {name: a, outputs: 150}, relu, fc: {name: b, outputs: 70, bias: false}, "
                    "relu, fc: {name: c, outputs: classes}")},
    {.name = "relu of the pixels", .text = MODEL("[3, 6, 5]", "4", "relu, " TO_CLASSES)},
    {.name = "relu of the pixels, then conv",
     .text = MODEL("[3, 7, 6]", "4", "relu, conv: {filters: 5, kernel: 3}, " TO_CLASSES)},
    {.name = "maxpool of the pixels, then conv",
     .text = MODEL("[3, 9, 8]", "4",
                   "maxpool: {kernel: 2}, relu, conv: {filters: 20, kernel: 3}, " TO_CLASSES)},
    {.name = "relu twice",
     .text = MODEL("[2, 5, 5]", "3", "conv: {filters: 3, kernel: 2}, relu, relu, " TO_CLASSES)},
    {.name = "conv 1x1 from 1 channel",
     .text = MODEL("[1, 7, 5]", "3", "conv: {filters: 2, kernel: 1}, relu, " TO_CLASSES)},
    {.name = "conv 1x1 from 33 channels to 17",
     .text = MODEL("[33, 4, 5]", "3", "conv: {filters: 17, kernel: 1}, relu, " TO_CLASSES)},
    {.name = "conv 1x1, stride 2, without bias",
     .text = MODEL("[17, 7, 8]", "3",
                   "relu, conv: {filters: 20, kernel: 1, stride: 2, bias: false}, "
                   "relu, " TO_CLASSES)},
    {.name = "conv 3x3 padded, 3 to 16 to 32 channels",
     .text = MODEL("[3, 8, 8]", "10",
                   "conv: {name: a, filters: 16, kernel: 3, pad: 1}, relu, "
                   "conv: {name: b, filters: 32, kernel: 3, pad: 1}, relu, maxpool: {kernel: "
                   "2}, " TO_CLASSES),
     .small = MODEL("[3, 4, 3]", "10",
                    "conv: {name: a, filters: 16, kernel: 3, pad: 1}, relu, "
                    "conv: {name: b, filters: 17, kernel: 3, pad: 1}, relu, maxpool: {kernel: "
                    "2}, " TO_CLASSES)},
    {.name = "conv 3x3 padded, 17 to 33 to 20 channels",
     .text =
         MODEL("[17, 6, 7]", "5",
               "conv: {name: a, filters: 33, kernel: 3, pad: 1}, relu, "
               "conv: {name: b, filters: 20, kernel: 3, pad: 1, bias: false}, relu, " TO_CLASSES),
     .small =
         MODEL("[17, 2, 2]", "5",
               "conv: {name: a, filters: 17, kernel: 3, pad: 1}, relu, "
               "conv: {name: b, filters: 18, kernel: 3, pad: 1, bias: false}, relu, " TO_CLASSES)},
    {.name = "conv 2x2, stride 3 leaves rows over",
     .text = MODEL("[3, 10, 9]", "4",
                   "conv: {name: a, filters: 3, kernel: 1}, "
                   "conv: {name: b, filters: 20, kernel: 2, stride: 3}, relu, " TO_CLASSES)},
    {.name = "conv 4x4, stride 2, pad 1",
     .text = MODEL("[2, 9, 11]", "4",
                   "conv: {name: a, filters: 17, kernel: 4, stride: 2, pad: 1}, "
                   "relu, conv: {name: b, filters: 3, kernel: 2}, " TO_CLASSES)},
    {.name = "conv 5x5, pad 2",
     .text = MODEL("[3, 7, 8]", "4",
                   "conv: {name: a, filters: 20, kernel: 5, pad: 2}, relu, "
                   "conv: {name: b, filters: 2, kernel: 5, pad: 1}, " TO_CLASSES),
     .small = MODEL("[3, 4, 5]", "4",
                    "conv: {name: a, filters: 20, kernel: 5, pad: 2}, relu, "
                    "conv: {name: b, filters: 2, kernel: 5, pad: 1}, " TO_CLASSES)},
    {.name = "conv padded by more than its kernel",
     .text = MODEL("[2, 4, 3]", "4",
                   "conv: {name: a, filters: 3, kernel: 3}, "
                   "conv: {name: b, filters: 3, kernel: 2, pad: 3}, " TO_CLASSES)},
    {.name = "conv 1x5 and 3x2, unequal strides and pads",
     .text =
         MODEL("[3, 9, 12]", "4",
               "conv: {name: a, filters: 17, kernel: [1, 5], stride: [1, 2], pad: [0, 3]}, relu, "
               "conv: {name: b, filters: 20, kernel: [3, 2], stride: [3, 1], pad: [2, 0]}, "
               "relu, " TO_CLASSES),
     .small =
         MODEL("[3, 5, 8]", "4",
               "conv: {name: a, filters: 17, kernel: [1, 5], stride: [1, 2], pad: [0, 3]}, relu, "
               "conv: {name: b, filters: 20, kernel: [3, 2], stride: [3, 1], pad: [2, 0]}, "
               "relu, " TO_CLASSES)},
    {.name = "conv 4x1 and 2x4, unequal strides",
     .text = MODEL("[1, 12, 9]", "4",
                   "conv: {name: a, filters: 3, kernel: [4, 1], stride: [2, 3]}, relu, "
                   "conv: {name: b, filters: 33, kernel: [2, 4], stride: [1, 3], pad: [1, 2]}, "
                   "relu, " TO_CLASSES)},
    {.name = "conv that covers its whole input",
     .text = MODEL("[17, 5, 3]", "6", "conv: {filters: 33, kernel: [5, 3]}, relu, " TO_CLASSES)},
    {.name = "conv alone gives the classes",
     .text = MODEL("[3, 7, 7]", "10",
                   "conv: {name: a, filters: 17, kernel: 3, stride: 2}, relu, "
                   "conv: {name: b, filters: classes, kernel: 3}")},
    {.name = "conv, 17 classes through a relu",
     .text = MODEL("[2, 4, 4]", "17", "conv: {filters: classes, kernel: 4}, relu")},
    {.name = "maxpool gives the classes",
     .text = MODEL("[3, 6, 6]", "3",
                   "conv: {filters: classes, kernel: 3, pad: 1}, "
                   "maxpool: {kernel: 6}")},
    {.name = "fc, then conv of 1x1",
     .text = MODEL("[1, 4, 4]", "4",
                   "fc: {name: a, outputs: 20}, relu, "
                   "conv: {name: b, filters: 17, kernel: 1}, relu, "
                   "fc: {name: c, outputs: classes}")},
    {.name = "maxpool overlaps, odd size, relu after it",
     .text = MODEL("[2, 9, 11]", "4",
                   "conv: {filters: 17, kernel: 3}, "
                   "maxpool: {kernel: 3, stride: 2}, relu, " TO_CLASSES)},
    {.name = "maxpool padded, from 3 channels",
     .text = MODEL("[2, 8, 7]", "4",
                   "conv: {filters: 3, kernel: 2}, relu, "
                   "maxpool: {kernel: 3, stride: 2, pad: 1}, " TO_CLASSES)},
    {.name = "maxpool 1x3 and 2x1, stride 1x2, leaves columns over",
     .text = MODEL("[2, 7, 12]", "4",
                   "conv: {filters: 20, kernel: 2}, relu, "
                   "maxpool: {name: a, kernel: [1, 3], stride: [1, 2], pad: [0, 1]}, "
                   "maxpool: {name: b, kernel: [2, 1], stride: [3, 1]}, " TO_CLASSES)},
    {.name = "maxpool of stride beyond its kernel",
     .text = MODEL("[3, 8, 8]", "4",
                   "conv: {filters: 5, kernel: 1}, "
                   "maxpool: {kernel: 2, stride: 3}, " TO_CLASSES)},
    {.name = "two classes",
     .text = MODEL("[1, 5, 5]", "2", "conv: {filters: 1, kernel: 2}, " TO_CLASSES)},
    {.name = "lenet",
     .channels = 1,
     .size = 16,
     .small = MODEL("[1, 16, 16]", "5",
                    "conv: {name: conv1, filters: 3, kernel: 5}, relu, "
                    "maxpool: {name: pool1, kernel: 2}, "
                    "conv: {name: conv2, filters: 5, kernel: 5}, relu, "
                    "maxpool: {name: pool2, kernel: 2}, "
                    "fc: {name: fc1, outputs: 11}, relu, fc: {name: fc2, outputs: classes}")},
    {.name = "vgg-small",
     .channels = 3,
     .size = 8,
     .large = true,
     .small = MODEL("[3, 8, 8]", "5",
                    "conv: {name: conv1_1, filters: 5, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv1_2, filters: 5, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool1, kernel: 2}, "
                    "conv: {name: conv2_1, filters: 7, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv2_2, filters: 7, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool2, kernel: 2}, "
                    "conv: {name: conv3_1, filters: 9, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv3_2, filters: 9, kernel: 3, pad: 1}, relu, "
                    "conv: {name: conv3_3, filters: 9, kernel: 3, pad: 1}, relu, "
                    "maxpool: {name: pool3, kernel: 2}, "
                    "fc: {name: fc1, outputs: 11}, relu, fc: {name: fc2, outputs: classes}")},
    /* layers of residual, inception and mobile networks */
    {.name = "add of two, one read twice",
     .text = MODEL("[3, 6, 5]", "4",
                   "conv: {name: a, filters: 17, kernel: 3, pad: 1}, "
                   "conv: {name: b, filters: 17, kernel: 3, pad: 1}, "
                   "add: {input: [b, a]}, relu, " TO_CLASSES),
     .small = MODEL("[2, 4, 4]", "4",
                    "conv: {name: a, filters: 5, kernel: 3, pad: 1}, conv: {name: b, filters: 5, "
                    "kernel: 3, pad: 1}, add: {input: [b, a]}, relu, " TO_CLASSES)},
    {.name = "add of three, one of them the pixels",
     .text = MODEL("[5, 4, 4]", "4",
                   "conv: {name: a, filters: 5, kernel: 1}, relu: {name: r}, "
                   "conv: {name: b, input: input, filters: 5, kernel: 3, pad: 1}, "
                   "add: {input: [input, r, b]}, " TO_CLASSES)},
    {.name = "add of one to itself, and a fully connected layer's output",
     .text = MODEL("[2, 5, 4]", "3",
                   "fc: {name: a, outputs: 20}, fc: {name: b, input: input, outputs: 20}, "
                   "add: {name: s, input: [a, b]}, add: {input: [s, s]}, " TO_CLASSES)},
    {.name = "add in place of a maximum's relu",
     .text = MODEL("[3, 6, 6]", "4",
                   "conv: {name: a, filters: 5, kernel: 3}, maxpool: {kernel: 2}, "
                   "relu: {name: r}, conv: {name: b, input: input, filters: 5, kernel: 5}, "
                   "add: {input: [r, b]}, " TO_CLASSES)},
    {.name = "add and concat, first or last of the pixels",
     .text = MODEL("[3, 6, 6]", "4",
                   "maxpool: {name: l, kernel: 2}, maxpool: {name: m, input: input, kernel: 2}, "
                   "conv: {name: a, input: input, filters: 3, kernel: 2, stride: 2}, "
                   "add: {name: s, input: [l, a]}, "
                   "conv: {name: b, input: input, filters: 3, kernel: 2, stride: 2}, "
                   "relu: {name: r}, add: {name: t, input: [r, m]}, "
                   "conv: {name: c, input: input, filters: 2, kernel: 4, stride: 2, pad: 1}, "
                   "concat: {name: u, input: [c, m]}, concat: {input: [s, t, u]}, " TO_CLASSES)},
    {.name = "relu beside another reader of its input",
     .text = MODEL("[3, 5, 5]", "4",
                   "conv: {name: a, filters: 18, kernel: 3}, relu: {name: r, input: a}, "
                   "add: {input: [a, r]}, " TO_CLASSES)},
    {.name = "four readers of one",
     .text = MODEL("[2, 6, 6]", "4",
                   "conv: {name: a, filters: 16, kernel: 3, pad: 1}, "
                   "conv: {name: b, input: a, filters: 16, kernel: 1}, "
                   "maxpool: {name: c, input: a, kernel: 3, stride: 1, pad: 1}, "
                   "avgpool: {name: d, input: a, kernel: 3, stride: 1, pad: 1}, "
                   "relu: {name: e, input: a}, "
                   "add: {input: [b, c, d, e]}, " TO_CLASSES),
     .small = MODEL("[2, 4, 4]", "4",
                    "conv: {name: a, filters: 5, kernel: 3, pad: 1}, conv: {name: b, input: a, "
                    "filters: 5, kernel: 1}, maxpool: {name: c, input: a, kernel: 3, stride: 1, "
                    "pad: 1}, avgpool: {name: d, input: a, kernel: 3, stride: 1, pad: 1}, relu: "
                    "{name: e, input: a}, add: {input: [b, c, d, e]}, " TO_CLASSES)},
    {.name = "concat in blocks of 16",
     .text = MODEL("[3, 5, 5]", "4",
                   "conv: {name: a, filters: 16, kernel: 3}, "
                   "conv: {name: b, input: input, filters: 32, kernel: 3}, "
                   "concat: {input: [b, a]}, relu, conv: {filters: 5, kernel: 2}, " TO_CLASSES)},
    {.name = "concat of odd channels, one input twice and the pixels",
     .text = MODEL("[3, 5, 4]", "4",
                   "conv: {name: a, filters: 7, kernel: 3, pad: 1}, relu: {name: r}, "
                   "concat: {input: [r, input, r]}, conv: {filters: 5, kernel: 2}, " TO_CLASSES)},
    {.name = "concat and pad_channels, a block of 16 and channels that fill none",
     .text = MODEL("[3, 4, 4]", "4",
                   "conv: {name: a, filters: 16, kernel: 3}, "
                   "conv: {name: b, input: input, filters: 5, kernel: 3}, "
                   "concat: {name: c, input: [a, b]}, "
                   "pad_channels: {name: d, input: a, channels: 20}, "
                   "concat: {input: [c, d]}, " TO_CLASSES)},
    {.name = "pad_channels, 16 to 32 and 5 to 8",
     .text = MODEL("[5, 5, 4]", "4",
                   "conv: {name: a, filters: 16, kernel: 3, pad: 1}, relu, "
                   "pad_channels: {channels: 32}, conv: {filters: 5, kernel: 2}, "
                   "pad_channels: {channels: 8}, " TO_CLASSES)},
    {.name = "avgpool with padding that counts, and leaves rows over",
     .text = MODEL("[3, 9, 8]", "4",
                   "conv: {filters: 5, kernel: 2}, "
                   "avgpool: {kernel: 3, stride: 2, pad: 1}, " TO_CLASSES)},
    {.name = "avgpool with padding that does not count",
     .text = MODEL(
         "[3, 8, 8]", "4",
         "conv: {filters: 17, kernel: 2}, "
         "avgpool: {kernel: [3, 2], stride: 2, pad: [1, 0], include_pad: false}, " TO_CLASSES)},
    {.name = "avgpool takes every second pixel",
     .text = MODEL("[3, 7, 8]", "4",
                   "conv: {filters: 16, kernel: 3}, avgpool: {kernel: 1, stride: 2}, " TO_CLASSES)},
    {.name = "global_avgpool gives the classes",
     .text = MODEL("[3, 5, 6]", "10", "conv: {filters: classes, kernel: 3}, global_avgpool")},
    {.name = "global_avgpool of 33 channels",
     .text = MODEL("[3, 6, 6]", "4",
                   "conv: {filters: 33, kernel: 3, stride: 2}, global_avgpool, " TO_CLASSES)},
    {.name = "maxpool whose last window hangs over",
     .text = MODEL("[2, 8, 9]", "4",
                   "conv: {filters: 16, kernel: 3}, "
                   "maxpool: {kernel: 3, stride: 2, ceil: true}, " TO_CLASSES)},
    {.name = "depthwise conv, stride 2",
     .text = MODEL("[3, 7, 6]", "4",
                   "conv: {name: a, filters: 32, kernel: 1}, relu, "
                   "conv: {name: b, filters: 32, groups: 32, kernel: 3, stride: 2, pad: 1}, "
                   "relu, " TO_CLASSES)},
    {.name = "depthwise conv of 5 channels, two filters each",
     .text = MODEL("[5, 6, 6]", "4",
                   "conv: {filters: 10, groups: 5, kernel: 3, bias: false}, " TO_CLASSES)},
    {.name = "conv in two groups",
     .text = MODEL("[6, 6, 5]", "4",
                   "conv: {name: a, filters: 32, kernel: 3, groups: 2}, relu, "
                   "conv: {name: b, filters: 48, kernel: 2, groups: 2}, " TO_CLASSES),
     .small = MODEL("[4, 5, 4]", "4",
                    "conv: {name: a, filters: 8, kernel: 3, groups: 2}, relu, conv: {name: b, "
                    "filters: 6, kernel: 2, groups: 2}, " TO_CLASSES)},
    {.name = "dilated conv, unequal ways",
     .text = MODEL("[3, 11, 9]", "4",
                   "conv: {name: a, filters: 17, kernel: 3, dilation: [3, 2], pad: 2}, relu, "
                   "conv: {name: b, filters: 16, kernel: 2, dilation: 2}, " TO_CLASSES),
     .small = MODEL("[2, 11, 9]", "4",
                    "conv: {name: a, filters: 3, kernel: 3, dilation: [3, 2], pad: 2}, relu, conv: "
                    "{name: b, filters: 5, kernel: 2, dilation: 2}, " TO_CLASSES)},
    {.name = "lrn of 16 channels and of 5",
     .text = MODEL("[3, 5, 5]", "4",
                   "conv: {name: a, filters: 16, kernel: 3}, lrn: {alpha: 0.5, k: 2}, "
                   "conv: {name: b, filters: 5, kernel: 2}, "
                   "lrn: {size: 3, alpha: 1, beta: 0.5}, " TO_CLASSES)},
    {.name = "lrn of one channel at a time, of 8, 16 and 24",
     .text = MODEL("[3, 4, 4]", "4",
                   "conv: {name: a, filters: 8, kernel: 2}, lrn: {size: 1, alpha: 1}, "
                   "conv: {name: b, filters: 16, kernel: 2}, lrn: {size: 1, alpha: 1}, "
                   "conv: {name: c, filters: 24, kernel: 1}, "
                   "lrn: {size: 1, alpha: 1, beta: 1}, " TO_CLASSES),
     .small = MODEL("[3, 3, 3]", "4",
                    "conv: {filters: 8, kernel: 2}, lrn: {size: 1, alpha: 1}, " TO_CLASSES)},
    {.name = "lrn of 20 channels, one pixel, a window of 7",
     .text = MODEL("[4, 1, 1]", "4",
                   "conv: {filters: 20, kernel: 1}, lrn: {size: 7, alpha: 1}, " TO_CLASSES)},
    {.name = "lrn of 24 channels, windows of 3, 7 and 15",
     .text = MODEL("[8, 3, 2]", "4",
                   "conv: {name: a, filters: 24, kernel: 1}, lrn: {name: l, size: 7, alpha: 1}, "
                   "lrn: {name: m, size: 15, alpha: 1, beta: 1}, "
                   "lrn: {name: n, size: 3, alpha: 1}, " TO_CLASSES)},
    {.name = "dropout of a fully connected layer",
     .draws = true,
     .text = MODEL("[2, 4, 4]", "4",
                   "fc: {name: a, outputs: 40}, relu, dropout: {rate: 0.4}, " TO_CLASSES)},
    {.name = "dropout of channels in blocks, and of the pixels",
     .draws = true,
     .text = MODEL("[2, 5, 5]", "4",
                   "dropout: {rate: 0.2}, conv: {filters: 17, kernel: 3}, dropout, " TO_CLASSES)},
    {.name = "dropout is the first input of an add",
     .draws = true,
     .text = MODEL("[3, 5, 4]", "4",
                   "conv: {name: a, filters: 3, kernel: 3}, dropout: {name: d}, "
                   "conv: {name: b, input: input, filters: 3, kernel: 3}, "
                   "add: {input: [d, b]}, relu, " TO_CLASSES)},
    {.name = "dropout is the second input of an add",
     .draws = true,
     .text = MODEL("[3, 5, 4]", "4",
                   "conv: {name: a, filters: 3, kernel: 3}, dropout: {name: d}, "
                   "conv: {name: b, input: input, filters: 3, kernel: 3}, "
                   "add: {input: [b, d]}, relu, " TO_CLASSES)},
    {.name = "batchnorm of 16 channels",
     .batch_statistics = true,
     .text = MODEL("[3, 5, 5]", "4",
                   "conv: {filters: 16, kernel: 3, bias: false}, batchnorm, relu, " TO_CLASSES)},
    {.name = "batchnorm of the pixels, of 5 channels and of 33",
     .batch_statistics = true,
     .text = MODEL("[2, 6, 5]", "4",
                   "batchnorm, conv: {name: a, filters: 5, kernel: 3}, "
                   "batchnorm: {momentum: 0.3, eps: 0.01}, relu, "
                   "conv: {name: b, filters: 33, kernel: 2}, batchnorm, " TO_CLASSES)},
    {.name = "batchnorm behind a fully connected layer",
     .batch_statistics = true,
     .text = MODEL("[2, 4, 4]", "4", "fc: {name: a, outputs: 19}, batchnorm, relu, " TO_CLASSES)},
    {.name = "a residual block",
     .batch_statistics = true,
     .text =
         MODEL("[3, 6, 6]", "4",
               "conv: {filters: 16, kernel: 3, pad: 1, bias: false}, batchnorm, "
               "relu: {name: r}, "
               "conv: {filters: 16, kernel: 3, pad: 1, stride: 2, bias: false}, "
               "batchnorm: {name: b}, "
               "conv: {input: r, filters: 16, kernel: 1, stride: 2, bias: false}, "
               "batchnorm: {name: d}, add: {input: [b, d]}, relu, global_avgpool, " TO_CLASSES)},
    {.name = "batchnorm, add and relu, read twice, and again",
     .batch_statistics = true,
     .text = MODEL("[3, 5, 5]", "4",
                   "conv: {name: c1, filters: 5, kernel: 3, pad: 1}, batchnorm, relu: {name: r1}, "
                   "conv: {name: c2, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: b2}, "
                   "add: {input: [r1, b2]}, relu: {name: r2}, "
                   "conv: {name: c3, filters: 5, kernel: 3, pad: 1}, batchnorm: {name: b3}, "
                   "add: {input: [b3, r2]}, relu, " TO_CLASSES)},
    {.name = "batchnorm and add without relu",
     .batch_statistics = true,
     .text = MODEL("[3, 5, 4]", "4",
                   "conv: {name: c1, filters: 16, kernel: 3}, batchnorm: {name: b}, "
                   "conv: {name: c2, input: input, filters: 16, kernel: 3}, "
                   "batchnorm: {name: d}, add: {input: [d, b]}, " TO_CLASSES)},
    {.name = "two of batchnorm and relu share the gradient of their sum",
     .batch_statistics = true,
     .text = MODEL("[3, 5, 4]", "4",
                   "conv: {name: c1, filters: 16, kernel: 3}, batchnorm, relu: {name: r}, "
                   "conv: {name: c2, input: input, filters: 16, kernel: 3}, batchnorm, "
                   "relu: {name: s}, add: {input: [r, s]}, " TO_CLASSES)},
    {.name = "batchnorm, add of a layer's output in another order, relu",
     .batch_statistics = true,
     .text = MODEL("[3, 5, 4]", "4",
                   "batchnorm: {name: f}, "
                   "conv: {name: c, input: input, filters: 3, kernel: 1}, batchnorm: {name: b}, "
                   "add: {input: [f, b]}, relu, " TO_CLASSES)},
};

const size_t gradient_n_cases = sizeof gradient_cases / sizeof *gradient_cases;
