/* The picture of a run: what is read back of its metrics, whatever a kill has left of them, what of
 * it is drawn, and that no run hangs on it. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "tests/base/near.h"
#include "tests/tools/work_place.h"
#include "tools/train/chart/chart.h"
#include "tools/train/chart/chart_metrics.h"
#include "tools/train/chart/chart_page.h"
#include "tools/train/chart/chart_svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* ---- what is said: ld --wrap ---- */

static char said[512];
static unsigned n_said;

void __wrap_bpt_log(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void __wrap_bpt_log(bpt_log_level level, const char *format, ...) {
    va_list values;
    if (level > BPT_LOG_INFO) return;
    va_start(values, format);
    (void)vsnprintf(said, sizeof said, format, values);
    va_end(values);
    n_said++;
}

/* ---- what time it is: likewise ---- */

enum { READING_NS = 1000000 }; /* from one look at the clock to the next */

static uint64_t now_ns;

uint64_t __wrap_bpt_clock_ns(void);

uint64_t __wrap_bpt_clock_ns(void) {
    return now_ns += READING_NS;
}

/* ---- metrics ---- */

static bpt_chart_metrics metrics;

static int set_up(void **state) {
    metrics = (bpt_chart_metrics){0};
    n_said = 0;
    return work_place_clear(state);
}

static int tear_down(void **state) {
    (void)state;
    bpt_chart_metrics_free(&metrics);
    return 0;
}

static void take(const char *line) {
    assert_int_equal(bpt_chart_metrics_take(&metrics, line, strlen(line)), BPT_OK);
}

static void take_start(double epoch, double seconds, unsigned ranks) {
    char line[512];
    snprintf(line, sizeof line,
             "{\"event\": \"start\", \"time\": \"2031-05-06T07:08:%02uZ\", \"model\": \"lenet\", "
             "\"data\": \"/data/fashion/\", \"update\": \"agwu\", \"ranks\": %u, \"batch_size\": "
             "64, \"lr\": 0.02, \"lr_factor\": %u, \"epoch\": %g, \"seconds\": %g}",
             ranks, ranks, ranks, epoch, seconds);
    take(line);
}

/* A step event for each tenth of an epoch, and an evaluation for each epoch; one takes ten seconds.
 */
static void take_epochs(unsigned first, unsigned n, double loss) {
    for (unsigned i = 10 * first + 1; i <= 10 * (first + n); i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "{\"event\": \"step\", \"epoch\": %g, \"step\": %u, \"seconds\": %u, \"loss\": "
                 "%g, \"lr\": 0.01, \"images_per_s\": 5000}",
                 0.1 * i, i, i, loss);
        take(line);
        if (i % 10 > 0) continue;
        snprintf(line, sizeof line,
                 "{\"event\": \"eval\", \"epoch\": %u, \"step\": %u, \"seconds\": %u, \"split\": "
                 "\"test\", \"loss\": %g, \"accuracy\": %g}",
                 i / 10, i, i, loss, 0.5 + 0.01 * i / 10);
        take(line);
    }
}

static void test_a_run(void **state) {
    (void)state;
    take_start(0, 0, 1);
    take_epochs(0, 3, 0.7);
    assert_string_equal(metrics.start.model, "lenet");
    assert_string_equal(metrics.start.data, "fashion");
    assert_string_equal(metrics.start.update, "agwu");
    assert_int_equal(metrics.start.batch_size, 64);
    assert_near(metrics.start.lr, 0.02, 0);
    assert_string_equal(metrics.first_time, "2031-05-06T07:08:01Z");
    assert_string_equal(metrics.split, "test");
    assert_int_equal(metrics.train_loss.n, 30);
    assert_int_equal(metrics.rate.n, 30);
    assert_int_equal(metrics.images_per_s.n, 30);
    assert_int_equal(metrics.test_loss.n, 3);
    assert_int_equal(metrics.test_accuracy.n, 3);
    assert_int_equal(metrics.n_resumes, 0);
    assert_near(metrics.last_epoch, 3, 1e-12);
    assert_near(metrics.last_seconds, 30, 1e-12);
    assert_near(metrics.test_accuracy.points[2].value, 0.53, 1e-12);
    assert_near(metrics.rate.points[4].seconds, 5, 1e-12);
}

/* A mean is where the middle of its interval is, also of the first one behind a start; a rate is
 * where it was told of. */
static void test_means_are_in_the_middle(void **state) {
    (void)state;
    take_start(2, 20, 1);
    take(
        "{\"event\": \"step\", \"epoch\": 4, \"seconds\": 30, \"loss\": 4, \"lr\": 0.5, "
        "\"images_per_s\": 500}");
    take("{\"event\": \"eval\", \"epoch\": 5, \"seconds\": 39, \"loss\": 1, \"accuracy\": 0.5}");
    take(
        "{\"event\": \"step\", \"epoch\": 7, \"seconds\": 50, \"loss\": 2, \"lr\": 0.25, "
        "\"images_per_s\": 700}");
    take_start(6, 44, 1); /* of a checkpoint in the midst of the last interval */
    take(
        "{\"event\": \"step\", \"epoch\": 8, \"seconds\": 54, \"loss\": 1, \"images_per_s\": 900}");
    assert_int_equal(metrics.train_loss.n, 2);
    assert_near(metrics.train_loss.points[0].epoch, 3, 1e-12);
    assert_near(metrics.train_loss.points[0].seconds, 25, 1e-12);
    assert_near(metrics.train_loss.points[1].epoch, 7, 1e-12);
    assert_near(metrics.images_per_s.points[0].seconds, 25, 1e-12);
    assert_near(metrics.images_per_s.points[1].seconds, 49, 1e-12);
    assert_int_equal(metrics.rate.n, 1);
    assert_near(metrics.rate.points[0].epoch, 4, 1e-12);
    assert_near(metrics.test_loss.points[0].epoch, 5, 1e-12);
    assert_near(metrics.last_epoch, 8, 1e-12);
}

/* The last interval of a run, or the last before it was stopped. */
static void test_speed_of_an_instant_is_none(void **state) {
    (void)state;
    take_start(0, 0, 1);
    take_epochs(0, 1, 0.7);
    take(
        "{\"event\": \"step\", \"epoch\": 1.01, \"seconds\": 10.2, \"loss\": 0.6, "
        "\"images_per_s\": 90000}");
    assert_int_equal(metrics.train_loss.n, 11);
    assert_int_equal(metrics.images_per_s.n, 10);
    take_start(1.01, 10.2, 1);
    take("{\"event\": \"step\", \"epoch\": 1.02, \"seconds\": 10.4, \"images_per_s\": 4000}");
    take("{\"event\": \"step\", \"epoch\": 1.03, \"seconds\": 10.5, \"images_per_s\": 4500}");
    assert_int_equal(metrics.images_per_s.n, 12);
}

/* What is not told, is no number, or is of no event that is shown. */
static void test_what_is_left_out(void **state) {
    (void)state;
    static const char *const lines[] = {
        "",
        "{}",
        "[1, 2]",
        "\"step\"",
        "{\"event\": 7}",
        "{\"event\": \"shares\", \"epoch\": 1, \"seconds\": 1, \"loss\": 1}",
        "{\"event\": \"step\", \"loss\": 1}",
        "{\"event\": \"step\", \"epoch\": null, \"seconds\": 1, \"loss\": 1}",
        "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1e200, \"loss\": 1}",
        "{\"event\": \"step\", \"epoch\": -1, \"seconds\": 1, \"loss\": 1}",
        "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1, \"loss\": 1",
        "{\"event\": \"eval\", \"epoch\": 0, \"seconds\": 0, \"accuracy\": 1.5}",
        "{\"event\": \"eval\", \"epoch\": 0, \"seconds\": 0, \"accuracy\": -1e-9}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) take(lines[i]);
    assert_int_equal(metrics.train_loss.n, 0);
    assert_int_equal(metrics.test_accuracy.n, 0);
    assert_near(metrics.last_epoch, 0, 0);
    take(
        "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1, \"loss\": null, \"lr\": 0.5, "
        "\"images_per_s\": \"many\"}");
    take("{\"event\": \"step\", \"epoch\": 2, \"seconds\": 2, \"loss\": 3e300, \"lr\": 1e-300}");
    assert_int_equal(metrics.train_loss.n, 0);
    assert_int_equal(metrics.images_per_s.n, 0);
    assert_int_equal(metrics.rate.n, 2);
    assert_near(metrics.rate.points[1].value, 0, 0);
    assert_near(metrics.last_epoch, 2, 0);
}

/* After a stop nothing was lost; after a crash, what came behind the checkpoint was. */
static void test_resumes(void **state) {
    (void)state;
    take_start(0, 0, 3);
    take_epochs(0, 4, 2);
    take_start(4, 40, 3);
    take_epochs(4, 4, 1);
    assert_int_equal(metrics.n_resumes, 1);
    assert_near(metrics.resumes[0].epoch, 4, 0);
    assert_int_equal(metrics.resumes[0].ranks, 0); /* as many as before */
    assert_int_equal(metrics.test_loss.n, 8);
    take_start(6, 60, 2);
    assert_int_equal(metrics.test_loss.n, 6);
    assert_int_equal(metrics.train_loss.n, 60);
    assert_near(metrics.last_epoch, 6, 0);
    assert_near(metrics.last_seconds, 60, 0);
    take_epochs(6, 2, 0.5);
    assert_int_equal(metrics.n_resumes, 2);
    assert_int_equal(metrics.resumes[1].ranks, 2);
    assert_int_equal(metrics.test_loss.n, 8);
    assert_near(metrics.test_loss.points[5].value, 1, 0);
    assert_near(metrics.test_loss.points[7].value, 0.5, 0);
    assert_string_equal(metrics.first_time, "2031-05-06T07:08:03Z");
    assert_int_equal(metrics.start.ranks, 2);
    take_start(2, 20, 2); /* of a checkpoint before both */
    assert_int_equal(metrics.n_resumes, 1);
    assert_near(metrics.resumes[0].epoch, 2, 0);
    assert_int_equal(metrics.train_loss.n, 20);
}

/* One that goes on from another run's checkpoint begins there. */
static void test_a_run_that_begins_late(void **state) {
    (void)state;
    take_start(6, 600, 1);
    assert_int_equal(metrics.n_resumes, 0);
    assert_near(metrics.first_epoch, 6, 0);
    assert_near(metrics.first_seconds, 600, 0);
}

/* Whole lines, once each. */
static void test_reading_on(void **state) {
    (void)state;
    static const char first[] =
        "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1, \"loss\": 4}\n"
        "{\"event\": \"step\", \"epoch\": 2, \"seconds\": 2, \"lo";
    static const char rest[] =
        "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1, \"loss\": 4}\n"
        "{\"event\": \"step\", \"epoch\": 2, \"seconds\": 2, \"loss\": 3}\n"
        "{\"event\": \"eval\", \"epoch\": 2, \"seconds\": 2, \"loss\": 5}\n";
    assert_int_equal(bpt_chart_metrics_read(&metrics, "none"), BPT_ENOENT);
    put_file("m", first);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bpt_chart_metrics_read(&metrics, "m"), BPT_OK);
        assert_int_equal(metrics.train_loss.n, 1);
    }
    put_file("m", rest);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bpt_chart_metrics_read(&metrics, "m"), BPT_OK);
        assert_int_equal(metrics.train_loss.n, 2);
        assert_int_equal(metrics.test_loss.n, 1);
        assert_near(metrics.train_loss.points[1].value, 3, 0);
    }
    assert_int_equal(bpt_chart_metrics_read(&metrics, "/dev/zero"), BPT_EDATA); /* has no end */
}

/* Cut between characters. */
static void test_long_names(void **state) {
    (void)state;
    take(
        "{\"event\": \"start\", \"epoch\": 0, \"data\": \"/\", \"model\": "
        "\"a\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
        "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\"}");
    assert_string_equal(metrics.start.data, "/");
    assert_string_equal(metrics.start.model,
                        "a\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                        "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9...");
}

/* ---- the picture ---- */

static char *page;

static void draw(void) {
    size_t size;
    free(page);
    page = NULL;
    FILE *out = open_memstream(&page, &size);
    assert_non_null(out);
    bpt_chart_page_write(&metrics, out);
    assert_int_equal(fclose(out), 0);
    assert_true(size < 100000);
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf"));
}

static unsigned count(const char *text) {
    unsigned n = 0;
    for (const char *at = page; (at = strstr(at, text)); at += strlen(text)) n++;
    return n;
}

static void test_what_is_drawn(void **state) {
    (void)state;
    take_start(0, 0, 3);
    take_epochs(0, 4, 0.7);
    take_start(4, 40, 2);
    take_epochs(4, 2, 0.7);
    draw();
    assert_int_equal(count("<title>lenet on fashion</title>"), 1);
    assert_int_equal(count(">2 ranks, agwu, batch size 64, lr 0.02 \xC3\x97 2, begun 2031-05-06 "
                           "07:08 UTC<"),
                     1);
    assert_int_equal(count(">best 0.5600 at epoch 6<"), 1);
    assert_int_equal(count(">test 0.5600<"), 1);
    assert_int_equal(count(">training 0.7<"), 1);
    assert_int_equal(count(">resumed, 2 ranks<"), 1);
    assert_int_equal(count("stroke-dasharray"), 4); /* in each panel */
    assert_int_equal(count("<path "), 5);
    assert_int_equal(count("<title>epoch 6: accuracy 0.56</title>"), 1);
    assert_int_equal(count(">seconds<"), 1);
    assert_int_equal(count("http"), 1); /* the name of SVG, and no link */
    assert_int_equal(count("<script"), 0);
}

/* Little, nothing, and values that leave an axis no room. */
static void test_what_there_is_little_of(void **state) {
    (void)state;
    draw();
    assert_int_equal(count(">a run<"), 2);
    assert_int_equal(count(">no evaluation yet<"), 1);
    assert_int_equal(count(">nothing measured yet<"), 3);
    assert_int_equal(count("<path "), 0);
    take_start(0, 0, 1);
    take("{\"event\": \"eval\", \"epoch\": 0, \"seconds\": 0, \"loss\": 0, \"accuracy\": 0}");
    draw();
    assert_int_equal(count(">best 0.0000 at epoch 0<"), 1);
    assert_int_equal(count(">test 0.0000<"), 1);
    assert_int_equal(count(">1 rank, agwu, batch size 64, lr 0.02, begun "), 1);
    assert_int_equal(count("<path "), 0);
    take(
        "{\"event\": \"step\", \"epoch\": 1e-9, \"seconds\": 1e-9, \"loss\": 0, \"lr\": 0, "
        "\"images_per_s\": 0}");
    draw();
    assert_int_equal(count(">training 0<"), 1);
    assert_int_equal(count(">nothing measured yet<"), 0);
}

/* A loss that grows beyond all bounds, and falls below them. */
static void test_any_loss(void **state) {
    (void)state;
    take_start(0, 0, 1);
    for (int i = 0; i < 3000; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "{\"event\": \"step\", \"epoch\": %d, \"seconds\": %d, \"loss\": %ge%d, \"lr\": "
                 "%d, \"images_per_s\": 1e99}",
                 i, i, i % 3 ? 1.0 : -1.0, i % 200 - 100, i % 7);
        take(line);
        if (i % 100 == 0) draw();
    }
    draw();
    assert_int_equal(count(">training: smoothed, as measured behind it<"), 1);
}

/* Those that would run into each other are one, and where words would, there are none. */
static void test_many_resumes(void **state) {
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        take_start(i, 10 * i, 1);
        take_epochs(i, 1, 1);
    }
    draw();
    assert_int_equal(metrics.n_resumes, 299);
    assert_in_range(count("stroke-dasharray"), 4 * 90, 4 * 110); /* of 664 pixels each has 6 */
    assert_in_range(count(">resumed<"), 4, 7);
}

static void test_escaping(void **state) {
    (void)state;
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"plain", "plain"},
        {"<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&apos;"},
        {"\x01\x1B[0m\x7F\n", "??[0m??"},
        {"\xC2\x9B"
         "1m\xEF\xBF\xBE\xEF\xBF\xBF\xE2\x80\xA8.",
         "?1m???."},
        {"\xC3\xA9\xF0\x9F\x98\x80", "\xC3\xA9\xF0\x9F\x98\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char written[128] = "";
        FILE *out = fmemopen(written, sizeof written, "w");
        assert_non_null(out);
        bpt_svg_escape(out, cases[i].text);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(written, cases[i].written);
    }
    take("{\"event\": \"start\", \"epoch\": 0, \"model\": \"</title><script>\"}");
    draw();
    assert_int_equal(count("<script>"), 0);
    assert_int_equal(count("&lt;/title&gt;&lt;script&gt;"), 2);
}

/* ---- drawing while it trains ---- */

static const char line[] = "{\"event\": \"step\", \"epoch\": 1, \"seconds\": 1, \"loss\": 4}\n";

static void test_drawing(void **state) {
    (void)state;
    bpt_chart *chart;
    char *text;
    size_t size;
    put_file("m", line);
    assert_int_equal(bpt_chart_open("m", "run.svg", &chart), BPT_OK);
    assert_false(bpt_path_exists("run.svg"));
    assert_true(bpt_chart_is_due(chart, now_ns));
    bpt_chart_draw(chart);
    const uint64_t due_ns = now_ns + 100 * READING_NS;
    assert_false(bpt_chart_is_due(chart, due_ns - 1));
    assert_true(bpt_chart_is_due(chart, due_ns));
    assert_int_equal(bpt_file_read("run.svg", 1 << 20, &text, &size), BPT_OK);
    assert_non_null(strstr(text, ">training 4<"));
    assert_string_equal(text + size - 7, "</svg>\n");
    bpt_free(text);
    bpt_chart_close(chart);
    bpt_chart_close(NULL);
    assert_int_equal(n_said, 0);
}

/* Whoever trains hears of it once, and has the error that he had. */
static void test_a_picture_that_cannot_be_drawn(void **state) {
    (void)state;
    bpt_chart *chart;
    put_file("m", line);
    make_folder("run.svg/in the way");
    assert_int_equal(bpt_chart_open("m", "run.svg", &chart), BPT_OK);
    (void)bpt_fail(BPT_ENUMERIC, "why it ends");
    for (int i = 0; i < 3; i++) bpt_chart_draw(chart);
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(said, "no chart: cannot "));
    assert_non_null(strstr(said, "run.svg: Is a directory; the run goes on without"));
    assert_string_equal(bpt_error_last()->text, "why it ends");
    assert_int_equal(bpt_error_last()->status, BPT_ENUMERIC);
    bpt_chart_close(chart);
}

static void test_metrics_that_are_gone(void **state) {
    (void)state;
    bpt_chart *chart;
    assert_int_equal(bpt_chart_open("m", "run.svg", &chart), BPT_OK);
    assert_int_equal(n_said, 0);
    bpt_chart_draw(chart);
    assert_int_equal(n_said, 1);
    assert_false(bpt_path_exists("run.svg"));
    put_file("m", line);
    bpt_chart_draw(chart); /* it is tried again */
    assert_true(bpt_path_exists("run.svg"));
    bpt_chart_close(chart);
}

/* The n-th allocation fails, until none does. */
static void test_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    put_file("m",
             "{\"event\": \"start\", \"epoch\": 0, \"data\": \"d\"}\n"
             "{\"event\": \"start\", \"epoch\": 1, \"data\": \"d\"}\n");
    for (int64_t n = 0, drawn = 0; !drawn; n++) {
        bpt_chart *chart = NULL;
        assert_true(n < 100);
        (void)remove("run.svg");
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_chart_open("m", "run.svg", &chart);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_true((status == BPT_OK) == (chart != NULL));
        if (status == BPT_OK) {
            bpt_memory_fail_at(n - 3);
            bpt_chart_draw(chart);
            bpt_memory_fail_at(-1);
            drawn = n > 3 && n_said == 0;
            assert_true(n_said > 0 || bpt_path_exists("run.svg"));
        }
        n_said = 0;
        bpt_chart_close(chart);
        assert_int_equal(bpt_memory_live(), live);
    }
}

static int close_all(void **state) {
    free(page);
    return work_place_close(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_means_are_in_the_middle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_speed_of_an_instant_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resumes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_that_begins_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reading_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_drawn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_there_is_little_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_loss, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_resumes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_escaping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_drawing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_picture_that_cannot_be_drawn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_metrics_that_are_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, work_place_open, close_all);
}
