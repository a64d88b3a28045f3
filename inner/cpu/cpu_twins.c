#include "inner/cpu/cpu_twins.h"

#include "inner/cpu/cpu_winograd.h"

#include <assert.h>
#include <string.h>

/* ---- specs ---- */

bpt__spec bpt__spec_of(bpt__operation operation) {
    bpt__spec s = {0};
    bpt__spec_number(&s, (int64_t)operation);
    return s;
}

/* Numbers beyond the last are counted alone: find() finds no twin then. */
void bpt__spec_number(bpt__spec *s, int64_t number) {
    assert(s->n < BPT__SPEC_NUMBERS);
    if (s->n < BPT__SPEC_NUMBERS) s->numbers[s->n] = number;
    s->n++;
}

void bpt__spec_real(bpt__spec *s, float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bpt__spec_number(s, (int64_t)bits);
}

void bpt__spec_problem(bpt__spec *s, const bpt_conv_problem *p) {
    const int64_t numbers[] = {p->n,           p->c,           p->h,         p->w,
                               p->k,           p->p,           p->q,         p->r,
                               p->s,           p->stride[0],   p->stride[1], p->pad[0],
                               p->pad[1],      p->groups,      p->bias,      p->relu,
                               p->dilation[0], p->dilation[1], p->winograd,  (int64_t)p->type};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) bpt__spec_number(s, numbers[i]);
}

/* Equal layouts may be several objects; they are told apart, and what has them is no twin. */
void bpt__spec_layout(bpt__spec *s, const bpt_layout *l) {
    bpt__spec_number(s, (int64_t)(uintptr_t)l);
}

static const bpt_kernel *owner_of(const bpt_kernel *k) {
    return k->owner ? k->owner : k;
}

void bpt__spec_kernel(bpt__spec *s, const bpt_kernel *k) {
    bpt__spec_number(s, (int64_t)(uintptr_t)owner_of(k));
}

/* ---- twins ---- */

static bpt_kernel *find(const bpt_cpu *cpu, const bpt__spec *s) {
    enum { LOOKED_AT = 32 }; /* tiles follow each other; kernels of other passes stand between */
    bpt_kernel *k = s->n <= BPT__SPEC_NUMBERS ? cpu->kernels : NULL;
    for (int i = 0; i < LOOKED_AT && k; i++, k = k->next)
        if (k->spec.n == s->n && memcmp(k->spec.numbers, s->numbers, sizeof s->numbers) == 0)
            return k;
    return NULL;
}

/* Memory objects of its own, of the same kind, which are nowhere yet. */
static bpt_status copy_args(const bpt_cpu *cpu, const dnnl_exec_arg_t *from, int n,
                            dnnl_exec_arg_t *to, int *n_made) {
    for (int i = 0; i < n; i++) {
        const bpt__md *md;
        to[i].arg = from[i].arg;
        BPT__DNNL_TRY(dnnl_memory_get_memory_desc(from[i].memory, &md));
        BPT__DNNL_TRY(dnnl_memory_create(&to[i].memory, md, cpu->engine, DNNL_MEMORY_NONE));
        *n_made = i + 1;
    }
    return BPT_OK;
}

static bpt_status copy_winograd(bpt_kernel *k, const bpt__winograd *from) {
    bpt__winograd *to = k->winograd;
    const int n = from->n_args;
    to->n_args = 0;
    return copy_args(k->cpu, from->args, n, to->args, &to->n_args);
}

static bpt_status make_twin(bpt_kernel *of, bpt_kernel **out) {
    bpt_kernel *k;
    BPT_TRY(bpt__kernel_new(of->cpu, NULL, of->winograd, &k));
    k->owner = of->owner ? of->owner : of;
    k->pd = of->pd;
    memcpy(k->layouts, of->layouts, sizeof k->layouts);
    memcpy(k->arg_of_slot, of->arg_of_slot, sizeof k->arg_of_slot);
    k->scratch_arg = of->scratch_arg;
    k->scratch_bytes = of->scratch_bytes;
    k->spec = of->spec;
    *out = k;
    if (of->winograd) BPT_TRY(copy_winograd(k, of->winograd));
    return copy_args(of->cpu, of->args, of->n_args, k->args, &k->n_args);
}

bpt_status bpt__kernel_twin(bpt_cpu *cpu, const bpt__spec *s, bpt_kernel **out) {
    bpt_kernel *of = find(cpu, s);
    *out = NULL;
    return of ? make_twin(of, out) : BPT_OK;
}
