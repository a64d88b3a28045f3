/** @file tests/ref/ref_stage.h
 * One layer of a model at work in double precision. Private to tests/ref/.
 *
 * Threads: any. */
#ifndef TESTS_REF_REF_STAGE_H
#define TESTS_REF_REF_STAGE_H

#include "tests/ref/ref_network.h"

enum { REF_MAX_SEGMENTS = 4 };

typedef struct ref_stage {
    const bpt_layer *layer;
    const ref_batch *batch;
    size_t n_out;                      /* values of the whole batch */
    const double *w[REF_MAX_SEGMENTS]; /* the layer's weights */
    double *dw[REF_MAX_SEGMENTS];      /* their gradients; NULL if nobody asks */
    double *terms[REF_MAX_SEGMENTS];   /* likewise: sums of absolute terms */
    const double **x;                  /* inputs, shape [n_inputs] */
    double **dx;                       /* gradients of the inputs, to be set; NULL: nobody asks */
    double *y, *dy;                    /* shape [n_out] */
    double *dy_terms;                  /* sums of the absolute terms of dy, as far as the readers of
                                        * y tell: else |dy|; shape [n_out] */
    double *dx_terms;                  /* of dx[0]; set by layers where terms cancel; NULL */
    int64_t *winner;                   /* of a maximum, shape [n_out] */
    double *mean, *var;                /* of a batch normalisation, shape [C] */
} ref_stage;

/** @return values of a batch of @p n samples */
size_t ref_n_values(bpt_shape s, int64_t n);

void ref_stage_forward(ref_stage *g);

/** Sets dx, dw, terms and dx_terms. */
void ref_stage_backward(ref_stage *g);

/** Ends the program. */
void ref_die(const char *what, const char *about);

#endif
