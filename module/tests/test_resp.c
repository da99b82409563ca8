#include <string.h>

#include "check.h"
#include "core/resp.h"

static bool whole(const char *text) {
    char *data = exact_copy(text, strlen(text));
    bool good = resp_is_one_value(data, strlen(text));
    free(data);
    return good;
}

static void every_type_of_resp2_and_resp3_is_one_value(void) {
    const char *good[] = {"+OK\r\n",
                          "-ERR no\r\n",
                          ":-12\r\n",
                          ":9223372036854775807\r\n",
                          ":-9223372036854775808\r\n",
                          "$0\r\n\r\n",
                          "$3\r\na\r\n\r\n",
                          "$-1\r\n",
                          "*-1\r\n",
                          "*0\r\n",
                          "*2\r\n:1\r\n$1\r\nx\r\n",
                          "_\r\n",
                          "#t\r\n",
                          "#f\r\n",
                          ",1.5e3\r\n",
                          ",inf\r\n",
                          ",nan\r\n",
                          "(123456789012345678901234567890\r\n",
                          "=7\r\ntxt:abc\r\n",
                          "~1\r\n:1\r\n",
                          "%1\r\n+k\r\n+v\r\n",
                          "|1\r\n+k\r\n+v\r\n:5\r\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(whole(good[i]));
}

static void what_is_cut_off_or_wrong_is_no_value(void) {
    const char *bad[] = {"",
                         "+",
                         "+OK",
                         "+OK\r",
                         "+OK\n",
                         "+O\nK\r\n",
                         ":\r\n",
                         ":1x\r\n",
                         ":9223372036854775808\r\n",
                         ":99999999999999999999\r\n",
                         "$5\r\nabc\r\n",
                         "$-2\r\n",
                         "$3\r\nabcde",
                         "$99999999999\r\nx\r\n",
                         "*1\r\n",
                         "*-2\r\n",
                         "*9223372036854775807\r\n",
                         "*1000000\r\n:1\r\n",
                         "_x\r\n",
                         "#x\r\n",
                         ",\r\n",
                         ",abc\r\n",
                         "=3\r\nabc\r\n",
                         "=5\r\nabcde\r\n",
                         "~-1\r\n",
                         "%1\r\n+k\r\n",
                         ">1\r\n:1\r\n",
                         "?\r\n",
                         "+OK\r\n+OK\r\n",
                         "|1\r\n+k\r\n+v\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!whole(bad[i]));
}

static void nesting_is_bounded(void) {
    char text[1024];
    for (int depth = 1; depth < 40; depth++) {
        text[0] = '\0';
        for (int i = 0; i < depth; i++) strcat(text, "*1\r\n");
        strcat(text, ":1\r\n");
        CHECK(whole(text) == (depth <= RESP_MAX_DEPTH));
    }
}

static void a_long_row_of_attributes_is_bounded_too(void) {
    size_t n = 200000;
    char *text = malloc(4 * n + 8);
    for (size_t i = 0; i < n; i++) memcpy(text + 4 * i, "|0\r\n", 4);
    memcpy(text + 4 * n, ":1\r\n", 4);
    CHECK(!resp_is_one_value(text, 4 * n + 4));
    free(text);
}

static void damaged_values_never_read_outside_their_bytes(void) {
    const char sample[] = "*4\r\n$3\r\nabc\r\n%1\r\n+k\r\n=7\r\ntxt:abc\r\n:12\r\n*2\r\n,1.5\r\n_\r\n";
    uint32_t random = 99;
    for (int round = 0; round < 50000; round++) {
        size_t length = next_random(&random) % sizeof sample;
        char *data = exact_copy(sample, length);
        for (int i = 0; i < 2 && length; i++)
            data[next_random(&random) % length] = "*$%~|=:+-_#,(0123456789\r\n"[next_random(&random) % 25];
        resp_is_one_value(data, length);
        free(data);
    }
}

int main(void) {
    RUN(every_type_of_resp2_and_resp3_is_one_value);
    RUN(what_is_cut_off_or_wrong_is_no_value);
    RUN(nesting_is_bounded);
    RUN(a_long_row_of_attributes_is_bounded_too);
    RUN(damaged_values_never_read_outside_their_bytes);
    return 0;
}
