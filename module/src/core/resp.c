#include "core/resp.h"

#include <string.h>

/* The line between the type byte and CR LF. */
static bool read_line(const char **at, const char *end, const char **line, size_t *length) {
    const char *start = *at;
    const char *cr = memchr(start, '\r', (size_t)(end - start));
    if (cr == NULL || end - cr < 2 || cr[1] != '\n') return false;
    if (memchr(start, '\n', (size_t)(cr - start)) != NULL) return false;
    *line = start;
    *length = (size_t)(cr - start);
    *at = cr + 2;
    return true;
}

/* All of int64, with a sign or without. */
static bool parse_integer(const char *text, size_t length, long long *value) {
    size_t i = 0;
    bool negative = length > 0 && text[0] == '-';
    unsigned long long sum = 0;
    if (length > 0 && (text[0] == '-' || text[0] == '+')) i++;
    if (i == length || length - i > 19) return false;
    for (; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        sum = sum * 10 + (unsigned long long)(text[i] - '0'); /* 19 digits fit in 64 bits */
    }
    if (sum > 9223372036854775807ULL + (negative ? 1 : 0)) return false;
    *value = negative ? (long long)(0 - sum) : (long long)sum;
    return true;
}

/* A string of a known length, and its CR LF. */
static bool read_blob(const char **at, const char *end, struct resp_item *item, long long length) {
    if (length == -1 && item->kind == '$') {
        item->null = true;
        return true;
    }
    if (length < 0 || length > end - *at - 2) return false;
    item->text = *at;
    item->length = (size_t)length;
    if (item->text[length] != '\r' || item->text[length + 1] != '\n') return false;
    *at += length + 2;
    return item->kind != '=' || (length >= 4 && item->text[3] == ':');
}

/* Only the count: the children follow. */
static bool read_aggregate(const char *at, const char *end, struct resp_item *item, long long count) {
    if (count == -1 && item->kind == '*') {
        item->null = true;
        return true;
    }
    if (count < 0 || count > (end - at) / 3) return false; /* each child takes three bytes or more */
    item->children = item->kind == '%' || item->kind == '|' ? 2 * count : count;
    return true;
}

/* RESP3's doubles and big numbers: which characters they may have. */
static bool is_number_text(const char *text, size_t length, const char *alphabet) {
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' || strchr(alphabet, text[i]) == NULL) return false;
    return length > 0 && length < 512;
}

/* One item: a scalar, or the head of an aggregate. */
bool resp_next(const char **at, const char *end, struct resp_item *item) {
    const char *line;
    size_t length;
    long long number;
    if (*at >= end) return false;
    *item = (struct resp_item){.kind = **at};
    (*at)++;
    if (!read_line(at, end, &line, &length)) return false;
    item->text = line;
    item->length = length;
    switch (item->kind) {
    case '+':
    case '-': return true;
    case ':': return parse_integer(line, length, &item->integer);
    case '_': item->null = true; return length == 0;
    case '#': item->integer = length == 1 && *line == 't'; return length == 1 && (*line == 't' || *line == 'f');
    case ',': return is_number_text(line, length, "+-.0123456789eEinfaINFA");
    case '(': return is_number_text(line, length, "+-0123456789");
    case '$':
    case '=': return parse_integer(line, length, &number) && read_blob(at, end, item, number);
    case '*':
    case '~':
    case '%':
    case '|': return parse_integer(line, length, &number) && read_aggregate(*at, end, item, number);
    default: return false; /* push, streamed and unknown types */
    }
}

/* One whole value. False where it is malformed or too deep. */
static bool skip_value(const char **at, const char *end, int depth) {
    struct resp_item item;
    if (depth > RESP_MAX_DEPTH || !resp_next(at, end, &item)) return false;
    for (long long i = 0; i < item.children; i++)
        if (!skip_value(at, end, depth + 1)) return false;
    return item.kind != '|' || skip_value(at, end, depth + 1); /* an attribute stands before the value it describes */
}

/* Exactly one, with nothing behind it. */
bool resp_is_one_value(const char *data, size_t length) {
    const char *at = data;
    const char *end = data + length;
    return skip_value(&at, end, 0) && at == end;
}

void resp_skip(const char **at, const char *end, long long values) {
    struct resp_item item;
    /* a value follows an attribute */
    while (values-- > 0 && resp_next(at, end, &item)) values += item.children + (item.kind == '|');
}

void resp_add_error(struct buffer *reply, const char *error) {
    buffer_add(reply, "-", 1);
    buffer_add(reply, error, strlen(error));
    buffer_add(reply, "\r\n", 2);
}
