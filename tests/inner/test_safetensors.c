/* Weight files: what is written, what is read back, and what a reader must refuse. */
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "inner/weights/safetensors.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct {
    char folder[64], path[96];
    bpt_segments segments; /* a.weight [2, 3], a.bias [2] */
    float values[8];
} fixture;

static int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    strcpy(f.folder, "/tmp/bpt-test-safetensors-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/m.safetensors", f.folder);
    assert_int_equal(bpt_segments_add(&f.segments, "a.weight", (int64_t[]){2, 3}, 2,
                                      (bpt_segment_role){.fan_in = 3, .decays = true}),
                     BPT_OK);
    assert_int_equal(bpt_segments_add(&f.segments, "a.bias", (int64_t[]){2}, 1,
                                      (bpt_segment_role){.fan_in = 0, .decays = false}),
                     BPT_OK);
    for (int i = 0; i < 8; i++) f.values[i] = 1.5f * (float)i - 4.0f;
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    bpt_segments_clear(&f->segments);
    return bpt_dir_remove(f->folder) == BPT_OK ? 0 : -1;
}

static void write_bytes(const fixture *f, const void *bytes, size_t n) {
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

/* Writes a file with this header in front of the fixture's values and n_extra bytes more. */
static void write_raw(const fixture *f, const char *header, size_t n_extra) {
    char bytes[2048] = "";
    const uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, f->values, sizeof f->values);
    write_bytes(f, bytes, 8 + length + sizeof f->values + n_extra);
}

/* Likewise, of any length. */
static void write_long(const fixture *f, const char *header, uint64_t length) {
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(&length, sizeof length, 1, out), 1);
    assert_int_equal(fwrite(header, 1, length, out), length);
    assert_int_equal(fwrite(f->values, sizeof f->values, 1, out), 1);
    assert_int_equal(fclose(out), 0);
}

static bpt_status read_back(const fixture *f, float *values) {
    return bpt_safetensors_read(f->path, &f->segments, values);
}

/* ---- what is written ---- */

static void test_bytes(void **state) {
    const fixture *f = *state;
    const bpt_metadata metadata[] = {{"b", "1"}, {"a", "2"}};
    char *bytes;
    size_t size;
    assert_int_equal(bpt_safetensors_write(f->path, &f->segments, f->values, metadata, 2), BPT_OK);
    assert_int_equal(bpt_file_read(f->path, 4096, &bytes, &size), BPT_OK);
    const char header[] =
        "{\"__metadata__\": {\"b\": \"1\", \"a\": \"2\"}, "
        "\"a.weight\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, "
        "\"a.bias\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [24, 32]}}";
    uint64_t length;
    memcpy(&length, bytes, 8);
    assert_int_equal(length % 64, 56);
    assert_int_equal(size, 8 + length + sizeof f->values);
    assert_memory_equal(bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + length, f->values, sizeof f->values);
    bpt_free(bytes);
}

static void test_round_trip(void **state) {
    const fixture *f = *state;
    float values[8] = {0};
    assert_int_equal(bpt_safetensors_write(f->path, &f->segments, f->values, NULL, 0), BPT_OK);
    assert_int_equal(read_back(f, values), BPT_OK);
    assert_memory_equal(values, f->values, sizeof values);
    assert_int_equal(
        bpt_safetensors_write("/tmp/no/such/folder/m", &f->segments, f->values, NULL, 0), BPT_EIO);
}

/* The values begin at a whole cache line, however long the header is. */
static void test_headers_of_any_length(void **state) {
    const fixture *f = *state;
    for (size_t n = 0; n < 64; n++) {
        char text[65] = "", *bytes;
        size_t size;
        uint64_t length;
        float values[8] = {0};
        memset(text, 'x', n);
        const bpt_metadata metadata = {"k", text};
        assert_int_equal(bpt_safetensors_write(f->path, &f->segments, f->values, &metadata, 1),
                         BPT_OK);
        assert_int_equal(bpt_file_read(f->path, 4096, &bytes, &size), BPT_OK);
        memcpy(&length, bytes, sizeof length);
        assert_int_equal((sizeof length + length) % 64, 0);
        assert_int_equal(size, sizeof length + length + sizeof f->values);
        assert_int_equal(bytes[sizeof length], '{');
        assert_non_null(memchr(bytes + sizeof length + length - 64, '}', 64));
        bpt_free(bytes);
        assert_int_equal(read_back(f, values), BPT_OK);
        assert_memory_equal(values, f->values, sizeof values);
    }
}

static long peak_rss_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Weights may be half of the memory that there is. */
static void test_writing_takes_no_second_copy(void **state) {
    fixture *f = *state;
    enum { N = 16 << 20 };
    float *values, *back;
    assert_int_equal(bpt_segments_add(&f->segments, "large", (int64_t[]){N}, 1,
                                      (bpt_segment_role){.fan_in = 1, .decays = true}),
                     BPT_OK);
    const size_t n = f->segments.n_elements;
    assert_int_equal(BPT_NEW("values", n, &values), BPT_OK);
    for (size_t i = 0; i < n; i++) values[i] = (float)i;
    const long before = peak_rss_kib();
    assert_int_equal(bpt_safetensors_write(f->path, &f->segments, values, NULL, 0), BPT_OK);
    assert_true(peak_rss_kib() - before < N * (long)sizeof(float) / 1024 / 4);
    assert_int_equal(BPT_NEW("values read", n, &back), BPT_OK);
    assert_int_equal(read_back(f, back), BPT_OK);
    assert_memory_equal(back, values, n * sizeof *values);
    bpt_free(back);
    bpt_free(values);
}

static void test_order_of_the_file_does_not_matter(void **state) {
    const fixture *f = *state;
    float values[8] = {0};
    write_raw(f,
              "{\"a.bias\":{\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"F32\"},"
              "\"a.weight\":{\"dtype\":\"F32\",\"data_offsets\":[8,32],\"shape\":[2,3]},"
              "\"__metadata__\":{\"format\":\"pt\"}}   ",
              0);
    assert_int_equal(read_back(f, values), BPT_OK);
    assert_memory_equal(values, f->values + 2, 6 * sizeof *values);
    assert_memory_equal(values + 6, f->values, 2 * sizeof *values);
}

/* ---- what is refused ---- */

#define TENSOR(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define WEIGHT TENSOR("a.weight", "F32", "[2,3]", "[0,24]")
#define BIAS   TENSOR("a.bias", "F32", "[2]", "[24,32]")

static void test_refused_headers(void **state) {
    const fixture *f = *state;
    static const struct {
        const char *header, *message;
        size_t n_extra;
    } cases[] = {
        {"{" WEIGHT "}", "tensor a.bias: the model has it and the file does not", 0},
        {"{" WEIGHT "," BIAS "," TENSOR("c", "F32", "[0]", "[32,32]") "}",
         "tensor c: the file has it and the model does not", 0},
        {"{\"__metadata__\":{}," TENSOR("c", "F32", "[0]", "[0,0]") "," WEIGHT "," BIAS "}",
         "tensor c: the file has it and the model does not", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F16", "[2]", "[24,32]") "}",
         "tensor a.bias: its dtype is F16, not F32", 0},
        {"{" WEIGHT ",\"a.bias\":{\"shape\":[2],\"data_offsets\":[24,32]}}",
         "tensor a.bias: it has no dtype", 0},
        {"{" WEIGHT ",\"a.bias\":[]}", "tensor a.bias: not a JSON object", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[3]", "[24,32]") "}",
         "tensor a.bias: its shape is not the one of the model", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2,1]", "[24,32]") "}",
         "tensor a.bias: its shape is not the one of the model", 0},
        {"{" BIAS "," TENSOR("a.weight", "F32", "[3,2]", "[0,24]") "}",
         "tensor a.weight: its shape is not the one of the model", 0},
        {"{" BIAS "," TENSOR("a.weight", "F32", "[-2,-3]", "[0,24]") "}",
         "tensor a.weight: its shape is not the one of the model", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "2", "[24,32]") "}",
         "tensor a.bias: its shape is not the one of the model", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[20,28]") "}",
         "tensor a.bias: its data overlap with another tensor's", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[28,36]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[28,36]") "}",
         "tensor a.bias: there is a hole before its data", 4},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[32,24]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[-8,0]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT
         "," TENSOR("a.bias", "F32", "[2]", "[9223372036854775800,9223372036854775807]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24,28]") "}",
         "tensor a.bias: its data_offsets do not fit its shape", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24,36]") "}",
         "tensor a.bias: its data_offsets do not fit its shape", 4},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24,32,40]") "}",
         "tensor a.bias: its data_offsets are not two numbers inside of the file", 0},
        {"{" WEIGHT "," BIAS "}", "4 bytes follow the last tensor", 4},
        {"[1]", "the header is not a JSON object", 0},
        {"7", "the header is not a JSON object", 0},
        {"{" WEIGHT "," WEIGHT "," BIAS "}", "not valid JSON, line 1: duplicate object key", 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24,99999999999999999999]") "}",
         "not valid JSON, line 1: too big integer", 0},
        {"", "not valid JSON", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float values[8];
        write_raw(f, cases[i].header, cases[i].n_extra);
        assert_int_equal(read_back(f, values), BPT_EDATA);
        const char *text = bpt_error_last()->text;
        if (strncmp(text, f->path, strlen(f->path)) != 0 || !strstr(text, cases[i].message))
            fail_msg("case %zu: \"%s\" is not about \"%s\"", i, text, cases[i].message);
    }
}

/* ---- what is passed over ---- */

static bpt_status read_except(const fixture *f, const char *except, float *values) {
    for (int i = 0; i < 8; i++) values[i] = 100.0f;
    return bpt_safetensors_read_except(f->path, &f->segments, except, values, NULL);
}

/* What is excepted may be of another shape or missing, and other layers may be in the file. */
static void test_except(void **state) {
    fixture *f = *state;
    float values[8];
    assert_int_equal(bpt_segments_add(&f->segments, "b.bias", (int64_t[]){1}, 1,
                                      (bpt_segment_role){.fan_in = 0}),
                     BPT_OK);
    float nine[9];
    for (int i = 0; i < 9; i++) nine[i] = 100.0f;
    write_raw(f, "{" TENSOR("b.bias", "F32", "[8]", "[0,32]") "}", 0);
    assert_int_equal(bpt_safetensors_read_except(f->path, &f->segments, "a,b", nine, NULL), BPT_OK);
    for (int i = 0; i < 9; i++) assert_true(nine[i] == 100.0f);
    write_raw(f, "{" WEIGHT "," TENSOR("old.head.bias", "I8", "[8]", "[24,32]") "}", 0);
    assert_int_equal(bpt_safetensors_read_except(f->path, &f->segments, "b,old", nine, NULL),
                     BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "tensor a.bias: the model has it"));
    f->segments.n = 2;
    f->segments.n_elements = 8;
    assert_int_equal(read_except(f, "old", values), BPT_EDATA); /* a.bias is not excepted */
    write_raw(f, "{" WEIGHT "," BIAS "," TENSOR("old.head.bias", "I8", "[3]", "[32,35]") "}", 3);
    assert_int_equal(read_except(f, "old", values), BPT_OK);
    assert_memory_equal(values, f->values, sizeof values);
    assert_int_equal(read_except(f, "ol", values), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "has a layer \"ol\" with weights"));
    assert_int_equal(read_except(f, NULL, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "tensor old.head.bias: the file has it"));
}

/* Whatever its place among the tensors of the header. */
static void test_empty_beside_another(void **state) {
    const fixture *f = *state;
    static const char *const headers[] = {
        "{" WEIGHT "," TENSOR("old.b", "F32", "[0]", "[24,24]") "," BIAS "}",
        "{" TENSOR("old.b", "F32", "[0]", "[0,0]") "," WEIGHT "," BIAS "}",
        "{" WEIGHT "," BIAS
        "," TENSOR("old.a", "F32", "[0]", "[0,0]") "," TENSOR("old.b", "F32", "[0]", "[32,32]") "}",
    };
    float values[8];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_raw(f, headers[i], 0);
        assert_int_equal(read_except(f, "old", values), BPT_OK);
        assert_memory_equal(values, f->values, sizeof values);
    }
}

/* Names of the file alone are of any length. */
static void test_long_name(void **state) {
    const fixture *f = *state;
#define LONG "a_module_of_another_program.within_one_of_its_own.within_one_more.head"
    float values[8];
    write_raw(f, "{" WEIGHT "," BIAS "," TENSOR(LONG ".bias", "I8", "[3]", "[32,35]") "}", 3);
    assert_int_equal(read_except(f, LONG, values), BPT_OK);
    assert_memory_equal(values, f->values, sizeof values);
    assert_int_equal(read_except(f, LONG "," LONG "s", values), BPT_EUSAGE);
    assert_non_null(strstr(bpt_error_last()->text, "has a layer \"" LONG "s\" with weights"));
#undef LONG
}

enum { MOST_OTHERS = 4096 };

/* @param n tensors beside the model's, all empty: of a layer "head", the last of them of "last" */
static void write_others(const fixture *f, int n) {
    const size_t size = 64 * ((size_t)n + 4);
    char *header;
    assert_int_equal(BPT_NEW("header", size, &header), BPT_OK);
    size_t length = (size_t)snprintf(header, size, "{" WEIGHT "," BIAS);
    for (int i = 0; i < n; i++)
        length += (size_t)snprintf(header + length, size - length,
                                   ",\"%s.%d\":{\"data_offsets\":[32,32]}",
                                   i < n - 1 ? "head" : "last", i);
    length += (size_t)snprintf(header + length, size - length, "}");
    write_long(f, header, length);
    bpt_free(header);
}

/* The last of as many as are looked at is a layer as the first is; of more, none is read. */
static void test_many_others(void **state) {
    const fixture *f = *state;
    float values[8];
    write_others(f, MOST_OTHERS);
    assert_int_equal(read_except(f, "head,last", values), BPT_OK);
    assert_memory_equal(values, f->values, sizeof values);
    assert_int_equal(read_except(f, "head,lost", values), BPT_EUSAGE);
    write_others(f, MOST_OTHERS + 1);
    assert_int_equal(read_except(f, "head", values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, ": 4099 tensors, the model has 2"));
    for (int i = 0; i < 8; i++) assert_true(values[i] == 100.0f);
    write_others(f, 2 * MOST_OTHERS);
    assert_int_equal(read_except(f, "head", values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, ": 8194 tensors, the model has 2"));
}

/* Files of PyTorch count the batches of each batch norm. */
static void test_counts_of_batches(void **state) {
    const fixture *f = *state;
    float values[8];
    write_raw(
        f, "{" WEIGHT "," BIAS "," TENSOR("a.num_batches_tracked", "I64", "[]", "[32,40]") "}", 8);
    assert_int_equal(read_back(f, values), BPT_OK);
    assert_memory_equal(values, f->values, sizeof values);
    write_raw(f, "{" WEIGHT "," BIAS "," TENSOR(".num_batches_tracked", "I64", "[]", "[32,40]") "}",
              8);
    assert_int_equal(read_back(f, values), BPT_EDATA);
}

/* Both tensors are those of another model: the error names the first, the hint the other. */
static void test_another_model(void **state) {
    const fixture *f = *state;
    float values[8];
    write_raw(f, "{" TENSOR("a.weight", "F32", "[4,3]", "[0,48]") "}", 48);
    assert_int_equal(read_back(f, values), BPT_EDATA);
    assert_non_null(
        strstr(bpt_error_last()->text,
               "tensor a.weight: its shape is not the one of the model, which is [2, 3]"));
    assert_non_null(strstr(bpt_error_last()->hint, "not as in the model are also a.bias"));
}

/* All that the model has, and more: likewise. Counts of batches, and what is excepted, are no part
 * of it. */
static void test_a_larger_model(void **state) {
    const fixture *f = *state;
    float values[8];
    write_raw(f,
              "{\"__metadata__\":{}," WEIGHT "," BIAS
              "," TENSOR("c.bias", "F32", "[0]", "[32,32]") "," TENSOR(
                  "a.num_batches_tracked", "F32", "[0]",
                  "[32,32]") "," TENSOR("d.bias", "F32", "[0]", "[32,32]") "}",
              0);
    assert_int_equal(read_except(f, NULL, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "tensor c.bias: the file has it"));
    assert_string_equal(bpt_error_last()->hint,
                        "the file may belong to another model; not of the model are also d.bias");
    assert_int_equal(read_except(f, "d", values), BPT_EDATA);
    assert_string_equal(bpt_error_last()->hint, "the file may belong to another model");
}

/* Only who finds some tensors, but not all, may wish to except the others. */
static void test_alike(void **state) {
    const fixture *f = *state;
    static const struct {
        const char *header, *except;
        size_t n_alike;
    } cases[] = {
        {"{" WEIGHT "}", NULL, 1},
        {"{" BIAS "}", NULL, 1},
        {"{" TENSOR("a.weight", "F32", "[4,3]", "[0,24]") "," BIAS "}", NULL, 1},
        {"{" TENSOR("a.weight", "F32", "[4,3]", "[0,24]") "}", NULL, 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F32", "[2]", "[24,99]") "}", NULL, 0},
        {"{" WEIGHT "," TENSOR("a.bias", "F16", "[2]", "[24,28]") "}", NULL, 0},
        {"{" WEIGHT "," BIAS "}", "b", 0},
        {"{" WEIGHT "," BIAS "," TENSOR("c.bias", "F32", "[0]", "[32,32]") "}", NULL, 2},
        {"{" BIAS "," TENSOR("c.bias", "F32", "[0]", "[32,32]") "}", "a", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float values[8];
        size_t n_alike = 7;
        write_raw(f, cases[i].header, 0);
        assert_int_not_equal(
            bpt_safetensors_read_except(f->path, &f->segments, cases[i].except, values, &n_alike),
            BPT_OK);
        assert_int_equal(n_alike, cases[i].n_alike);
    }
}

/* The right model, saved with other numbers: nothing is said of another model. */
static void test_another_dtype(void **state) {
    const fixture *f = *state;
    float values[8];
    write_raw(f,
              "{" TENSOR("a.weight", "BF16", "[2,3]", "[0,12]") "," TENSOR("a.bias", "BF16", "[2]",
                                                                           "[12,16]") "}",
              0);
    assert_int_equal(read_back(f, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "tensor a.weight: its dtype is BF16, not F32"));
    assert_string_equal(bpt_error_last()->hint, "save the weights as float32");
}

/* The header is there, the end is not. */
static void test_cut_short(void **state) {
    const fixture *f = *state;
    float values[8];
    write_raw(f, "{" WEIGHT "," BIAS "}", 0);
    assert_int_equal(read_back(f, values), BPT_OK);
    struct stat file;
    assert_int_equal(stat(f->path, &file), 0);
    assert_int_equal(truncate(f->path, file.st_size - 1), 0);
    assert_int_equal(read_back(f, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->hint, "cut short"));
}

static void test_refused_lengths(void **state) {
    const fixture *f = *state;
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, (uint64_t)INT64_MAX, 1 << 30, 9};
    float values[8];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[16] = "";
        memcpy(bytes, &lengths[i], 8);
        write_bytes(f, bytes, sizeof bytes);
        assert_int_equal(read_back(f, values), BPT_EDATA);
        assert_non_null(strstr(bpt_error_last()->text, "not a safetensors file: header of"));
        assert_string_equal(bpt_error_last()->hint, "");
    }
    static const char zip[] = "PK\3\4 of torch.save()";
    write_bytes(f, zip, sizeof zip);
    assert_int_equal(read_back(f, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->hint, "save_file()"));
    write_bytes(f, "1234567", 7);
    assert_int_equal(read_back(f, values), BPT_EDATA);
    assert_non_null(strstr(bpt_error_last()->text, "7 bytes are too few"));
}

/* A header that claims and has more than the limit, in a file with a hole, is not even read. */
static void test_huge_header(void **state) {
    const fixture *f = *state;
    const uint64_t length = (uint64_t)1 << 32;
    float values[8];
    write_bytes(f, &length, 8);
    assert_int_equal(truncate(f->path, (off_t)(length + 64)), 0);
    assert_int_equal(read_back(f, values), BPT_EDATA);
}

static void test_no_file(void **state) {
    const fixture *f = *state;
    float values[8];
    assert_int_equal(read_back(f, values), BPT_ENOENT);
    assert_int_equal(bpt_safetensors_read(f->folder, &f->segments, values), BPT_EDATA);
}

/* Random damage is refused or harmless; never a crash, and nothing is left behind. */
static void test_damage(void **state) {
    const fixture *f = *state;
    const uint64_t seed = 4, live = bpt_memory_live();
    printf("seed %" PRIu64 "\n", seed);
    assert_int_equal(bpt_safetensors_write(f->path, &f->segments, f->values, NULL, 0), BPT_OK);
    char *whole;
    size_t size;
    assert_int_equal(bpt_file_read(f->path, 4096, &whole, &size), BPT_OK);
    for (uint64_t i = 0; i < 3000; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        char bytes[4096];
        float values[8];
        memcpy(bytes, whole, size);
        size_t n = size;
        for (uint32_t k = 1 + bpt_random_below(&r, 3); k > 0; k--)
            bytes[bpt_random_below(&r, (uint32_t)size)] ^= (char)(1 << bpt_random_below(&r, 8));
        if (bpt_random_below(&r, 4) == 0) n = bpt_random_below(&r, (uint32_t)size);
        write_bytes(f, bytes, n);
        const bpt_status status = read_back(f, values);
        assert_true(status == BPT_OK || status == BPT_EDATA);
    }
    bpt_free(whole);
    assert_int_equal(bpt_memory_live(), live);
}

static void test_out_of_memory(void **state) {
    const fixture *f = *state;
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int64_t n = 0;
    for (; status != BPT_OK && n < 1000; n++) {
        float values[8];
        bpt_memory_fail_at(n);
        status = bpt_safetensors_write(f->path, &f->segments, f->values, NULL, 0);
        if (status == BPT_OK) status = read_back(f, values);
        bpt_memory_fail_at(-1);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_int_equal(status, BPT_OK);
    assert_true(n > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_bytes),
        TEST(test_headers_of_any_length),
        TEST(test_round_trip),
        TEST(test_writing_takes_no_second_copy),
        TEST(test_order_of_the_file_does_not_matter),
        TEST(test_refused_headers),
        TEST(test_except),
        TEST(test_empty_beside_another),
        TEST(test_long_name),
        TEST(test_many_others),
        TEST(test_counts_of_batches),
        TEST(test_another_model),
        TEST(test_a_larger_model),
        TEST(test_alike),
        TEST(test_another_dtype),
        TEST(test_cut_short),
        TEST(test_refused_lengths),
        TEST(test_huge_header),
        TEST(test_no_file),
        TEST(test_damage),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
