#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool ends_in(const char *list, const char *end) {
    const size_t length = strlen(list), n = strlen(end);
    return length >= n && strcmp(list + length - n, end) == 0;
}

/* The last name goes. */
static void take_last(char *list) {
    char *last = list;
    for (char *at = strstr(list, ", "); at; at = strstr(at + 1, ", ")) last = at;
    *last = '\0';
}

static bool append(char *list, size_t size, const char *name) {
    const size_t length = strlen(list);
    const char *between = length ? ", " : "";
    if (length + strlen(between) + strlen(name) >= size) return false;
    snprintf(list + length, size - length, "%s%s", between, name);
    return true;
}

void bpt_list_add(char *list, size_t size, const char *name) {
    static const char more[] = "...";
    if (ends_in(list, more) || append(list, size, name)) return;
    while (!append(list, size, more) && list[0]) take_last(list);
}

unsigned bpt_text_unfit(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < ' ' || at[0] == 0x7F) return at[0];
    if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0) return at[1];
    if (at[0] == 0xE2 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9))
        return 0x2000u + (at[2] & 0x3F);
    if (at[0] == 0xEF && at[1] == 0xBF && at[2] >= 0xBE) return 0xFFC0u + (at[2] & 0x3F);
    return 0;
}

static bool continues(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* @param[out] shown the first character of a text, as it is or escaped; shape [8]
 * @return bytes that it has in the text */
static size_t show_first(const unsigned char *text, char *shown) {
    const unsigned unfit = bpt_text_unfit((const char *)text);
    size_t n = 1;
    while (text[0] >= 0x80 && n < 4 && continues(text[n])) n++;
    if (unfit)
        snprintf(shown, 8, unfit < 0x80 ? "\\x%02x" : "\\u%04x", unfit);
    else
        snprintf(shown, 8, "%.*s", (int)n, (const char *)text);
    return n;
}

void bpt_text_escape(const char *text, char *out, size_t size) {
    size_t length = 0;
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        char shown[8];
        at += show_first(at, shown);
        const size_t more = strlen(shown);
        if (length + more >= size) break;
        memcpy(out + length, shown, more);
        length += more;
    }
    out[length] = '\0';
}

/* Whether a shell takes all of it as it stands. */
static bool is_plain_word(const char *text) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-";
    const char *at = text;
    while (*at && (strchr(plain, *at) || (unsigned char)*at >= 0x80)) at++;
    return at > text && !*at;
}

/* Whether a message shows it as it is, and a user finds the keys. */
static bool can_be_typed(const char *text) {
    while (*text && !bpt_text_unfit(text)) text++;
    return !*text;
}

/* @param[in,out] length of what is in @p out, or would be if there were room
 * @return whether there was */
static bool put(const char *text, char *out, size_t size, size_t *length) {
    *length += (size_t)snprintf(out + *length, size - *length, "%s", text);
    return *length < size;
}

bool bpt_text_quote(const char *text, char *out, size_t size) {
    const char *quote = is_plain_word(text) ? "" : "'";
    size_t length = 0;
    bool done = can_be_typed(text) && put(quote, out, size, &length);
    for (; done && *text; text++) {
        const char same[] = {*text, '\0'};
        done = put(*text == '\'' ? "'\\''" : same, out, size, &length);
    }
    done = done && put(quote, out, size, &length);
    if (!done) out[0] = '\0';
    return done;
}

void bpt_text_keep_printable(char *text) {
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7F) *at = '?';
        if (*at == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0) at[0] = at[1] = '?';
    }
}

void bpt_text_time_left(double seconds, char *text) {
    const unsigned left = (unsigned)(seconds < 3.5e6 ? seconds : 3.5e6), hours = left / 3600;
    if (hours > 0)
        snprintf(text, BPT_TIME_LEFT_SIZE, "%u:%02u:%02u", hours, left / 60 % 60, left % 60);
    else
        snprintf(text, BPT_TIME_LEFT_SIZE, "%02u:%02u", left / 60, left % 60);
}

bool bpt_text_is_utf8(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        const int n = *p < 0x80                 ? 0
                      : *p >= 0xC2 && *p < 0xE0 ? 1
                      : (*p & 0xF0) == 0xE0     ? 2
                      : *p >= 0xF0 && *p < 0xF5 ? 3
                                                : -1;
        if (n < 0) return false;
        const unsigned char lead = *p++, next = *p;
        if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
            (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F))
            return false;
        for (int i = 0; i < n; i++)
            if ((*p++ & 0xC0) != 0x80) return false;
    }
    return true;
}
