/* The picture of a run from any metrics: whatever they say, it is one, with numbers in it that are
 * some, and text that is UTF-8 and leads out of nothing. */
#include "base/text.h"
#include "tools/train/chart/chart_metrics.h"
#include "tools/train/chart/chart_page.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is in quotes is a number, a list of some, or a word of ours. */
static void check_attributes(const char *page) {
    static const char *const wrong[] = {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (strstr(page, wrong[i])) abort();
    for (const char *at = page; (at = strstr(at, " d=\""));) {
        at += strlen(" d=\"");
        at += strspn(at, "ML-. 0123456789");
        if (*at != '"') abort();
    }
}

/* Each mark that opens is closed before the next opens. */
static void check_marks(const char *page) {
    bool open = false;
    for (const char *at = page; *at; at++) {
        if (*at != '\n' && bpt_text_unfit(at)) abort();
        if (*at != '<' && *at != '>') continue;
        if (open == (*at == '<')) abort();
        open = !open;
    }
    if (open || !bpt_text_is_utf8(page)) abort();
}

static void draw(const bpt_chart_metrics *m) {
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    if (!out) abort();
    bpt_chart_page_write(m, out);
    if (fclose(out) != 0) abort();
    check_attributes(page);
    check_marks(page);
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bpt_chart_metrics m;
    m = (bpt_chart_metrics){0};
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - data) - at : size - at;
        if (bpt_chart_metrics_take(&m, (const char *)data + at, length) != BPT_OK) abort();
        at += length + 1;
    }
    draw(&m);
    bpt_chart_metrics_free(&m);
    return 0;
}
