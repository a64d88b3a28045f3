#include "storage/loader/normalise.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static void plain(const uint8_t *restrict pixels, size_t n, float scale, float shift,
                  float *restrict out) {
    for (size_t i = 0; i < n; i++) out[i] = (float)pixels[i] * scale + shift;
}

#ifdef __SSE2__
enum { BLOCK = 16, VECTOR = 4 }; /* values */

/* @param values four of 32 bits */
static inline void put(__m128i values, __m128 scale, __m128 shift, float *out) {
    _mm_stream_ps(out, _mm_add_ps(_mm_mul_ps(_mm_cvtepi32_ps(values), scale), shift));
}

/* Whole blocks. @param out aligned to a vector */
static void stream(const uint8_t *pixels, size_t n, float scale, float shift, float *out) {
    const __m128 a = _mm_set1_ps(scale), b = _mm_set1_ps(shift);
    const __m128i zero = _mm_setzero_si128();
    for (size_t i = 0; i < n; i += BLOCK) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(pixels + i));
        const __m128i low = _mm_unpacklo_epi8(v, zero), high = _mm_unpackhi_epi8(v, zero);
        put(_mm_unpacklo_epi16(low, zero), a, b, out + i);
        put(_mm_unpackhi_epi16(low, zero), a, b, out + i + VECTOR);
        put(_mm_unpacklo_epi16(high, zero), a, b, out + i + 2 * VECTOR);
        put(_mm_unpackhi_epi16(high, zero), a, b, out + i + 3 * VECTOR);
    }
    _mm_sfence(); /* such stores may be seen later than those behind them */
}

/* @return values before the first that is aligned to a vector */
static size_t before_aligned(const float *out, size_t n) {
    const size_t beyond = (uintptr_t)out / sizeof *out % VECTOR;
    const size_t before = beyond ? VECTOR - beyond : 0;
    return before < n ? before : n;
}

void bpt__normalise(const uint8_t *pixels, size_t n, float scale, float shift, bool past_caches,
                    float *out) {
    size_t done = 0;
    if (past_caches) {
        const size_t before = before_aligned(out, n), streamed = (n - before) / BLOCK * BLOCK;
        plain(pixels, before, scale, shift, out);
        stream(pixels + before, streamed, scale, shift, out + before);
        done = before + streamed;
    }
    plain(pixels + done, n - done, scale, shift, out + done);
}
#else
void bpt__normalise(const uint8_t *pixels, size_t n, float scale, float shift, bool past_caches,
                    float *out) {
    (void)past_caches; /* there is no such store */
    plain(pixels, n, scale, shift, out);
}
#endif
