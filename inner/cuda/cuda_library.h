/** @file inner/cuda/cuda_library.h
 * cuDNN and cuBLASLt, loaded when a GPU is opened: a program neither needs them where there is no
 * GPU nor pays at every start for libraries of some hundred megabytes.
 *
 * Threads: a library is the thread's that owns the device. */
#ifndef BPT_INNER_CUDA_CUDA_LIBRARY_H
#define BPT_INNER_CUDA_CUDA_LIBRARY_H

#include "base/yaml.h"
#include "inner/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The libraries with their handles, and the room that their kernels share. */
typedef struct bpt_cuda_library bpt_cuda_library;

/** Loads both libraries and makes a handle of each for the calling thread's GPU.
 * @param tf32 lets products of floats use tensor cores, with 10 bits of their mantissas
 * @param[out] library caller owns, bpt_cuda_library_free()
 * @return BPT_OK, BPT_EBACKEND (a library is missing or too old: says which file is looked for;
 * with a hint), BPT_ENOMEM, BPT_EFULL */
bpt_status bpt_cuda_library_open(bool tf32, bpt_cuda_library **library);
void bpt_cuda_library_free(bpt_cuda_library *library);

/** What was chosen so far, as YAML, for another process; and what another one has chosen, before
 * any kernel is created: those are then taken without being measured.
 * @param gpu the card's name: choices of another card, or of another version of a library, are of
 * no use here (@p unlike says so)
 * @param[out] text caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE (not such a file) */
bpt_status bpt_cuda_library_write_choices(const bpt_cuda_library *library, const char *gpu,
                                          char **text);
bpt_status bpt_cuda_library_read_choices(bpt_cuda_library *library, const char *gpu,
                                         const bpt_yaml *doc, const bpt_yaml_node *map,
                                         const char **unlike);

/** @return choices made since it was opened, and not read */
unsigned bpt_cuda_library_measured(const bpt_cuda_library *library);

/** Kernels of both libraries need room that is theirs while they run; it is shared, as work is in
 * order. The largest that any kernel created so far wants: */
size_t bpt_cuda_library_workspace(const bpt_cuda_library *library);

/** Gives them the room, of at least as many bytes. Before anything is run. */
void bpt_cuda_library_use(bpt_cuda_library *library, void *workspace);

/** Kernels are chosen by measurement; at most this many bytes of workspace for each. */
#define BPT_CUDA_MAX_WORKSPACE ((size_t)512 << 20)

/** A convolution in [N, H, W, C] with filters [K, R, S, C / groups]. */
typedef struct bpt_cuda_conv_problem {
    bpt_value_type type; /* of x, y, their gradients and the weights; sums are floats */
    int64_t n, c, h, w, k, p, q, groups;
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    bool bias, relu; /* behind the products, in the forward pass */
} bpt_cuda_conv_problem;

typedef enum bpt_cuda_conv_step {
    BPT_CUDA_CONV_FORWARD,          /* y = relu(conv(x, w) + bias) */
    BPT_CUDA_CONV_BACKWARD_DATA,    /* dx from dy and w */
    BPT_CUDA_CONV_BACKWARD_WEIGHTS, /* dw from x and dy: always floats */
} bpt_cuda_conv_step;

/** One step of a convolution with the engine that was fastest for it. */
typedef struct bpt_cuda_conv bpt_cuda_conv;

/** Asks cuDNN for its engines and measures the best of them, on memory that is taken for it and
 * given back. Engines that do not give the same bits each time are passed over.
 * @param[out] conv caller owns, bpt_cuda_conv_free(). .bias and .relu are done by the engine where
 * one can, else by a kernel of ours behind it (bpt_cuda_bias())
 * @return BPT_OK, BPT_EBACKEND (no engine can do it), BPT_ENOMEM, BPT_EFULL */
bpt_status bpt_cuda_conv_create(bpt_cuda_library *library, const bpt_cuda_conv_problem *problem,
                                bpt_cuda_conv_step step, bpt_cuda_conv **conv);
void bpt_cuda_conv_free(bpt_cuda_conv *conv);

/** @return nanoseconds that the chosen engine took when it was measured (median) */
uint64_t bpt_cuda_conv_ns(const bpt_cuda_conv *conv);

/** Runs it: @p a, @p b to @p out are x, w to y; dy, w to dx; x, dy to dw.
 * @param bias floats, shape [k]; NULL without */
bpt_status bpt_cuda_conv_run(bpt_cuda_stream stream, const bpt_cuda_conv *conv, const void *a,
                             const void *b, const float *bias, void *out);

/** A fully connected layer's products, through cuBLASLt: x [n, c], weights [k, c], y [n, k]. */
typedef struct bpt_cuda_product_problem {
    bpt_value_type type; /* of x, y, their gradients and the weights; sums are floats */
    int64_t n, c, k;
    bool bias; /* added in the forward pass */
} bpt_cuda_product_problem;

typedef struct bpt_cuda_product bpt_cuda_product;

/** The same steps as of a convolution, with bias but without ReLU; dw is always floats. The
 * fastest of cuBLASLt's heuristics is chosen by measurement.
 * @return as bpt_cuda_conv_create() */
bpt_status bpt_cuda_product_create(bpt_cuda_library *library,
                                   const bpt_cuda_product_problem *problem, bpt_cuda_conv_step step,
                                   bpt_cuda_product **product);
void bpt_cuda_product_free(bpt_cuda_product *product);
uint64_t bpt_cuda_product_ns(const bpt_cuda_product *product);

/** As bpt_cuda_conv_run(). @param bias floats, shape [k]; NULL without */
bpt_status bpt_cuda_product_run(bpt_cuda_stream stream, const bpt_cuda_product *product,
                                const void *a, const void *b, const float *bias, void *out);

#ifdef __cplusplus
}
#endif

#endif
