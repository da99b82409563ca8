#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ai/tensor_layout.h"
#include "check.h"
#include "core/latency.h"

static const struct dtype *type(const char *name) { return dtype_find(name, strlen(name)); }

static void types_are_found_in_any_case_and_unknown_ones_are_not(void) {
    CHECK(type("FLOAT") && type("float") == type("FLOAT") && type("STRING"));
    CHECK(!type("FLOAT8") && !type("UINT128") && !type("") && !type("FLOA"));
}

static void sizes_that_overflow_are_refused(void) {
    size_t elements;
    long long huge[] = {4294967296LL, 4294967296LL, 4294967296LL};
    long long wide[] = {TENSOR_MAX_BYTES / 8 + 1};
    long long most[] = {TENSOR_MAX_BYTES / 8};
    CHECK(!tensor_elements(type("INT8"), huge, 3, &elements));
    CHECK(!tensor_elements(type("DOUBLE"), wide, 1, &elements));
    CHECK(tensor_elements(type("DOUBLE"), most, 1, &elements) && elements == TENSOR_MAX_BYTES / 8);
}

static void dimensions_below_one_are_refused_and_none_means_one_element(void) {
    size_t elements;
    long long zero[] = {2, 0}, negative[] = {-1};
    CHECK(!tensor_elements(type("FLOAT"), zero, 2, &elements));
    CHECK(!tensor_elements(type("FLOAT"), negative, 1, &elements));
    CHECK(tensor_elements(type("FLOAT"), NULL, 0, &elements) && elements == 1);
}

static void data_must_have_exactly_its_length(void) {
    CHECK(tensor_data_error(type("INT16"), 2, "abcd", 4) == NULL);
    CHECK(tensor_data_error(type("INT16"), 2, "abc", 3) != NULL);
    CHECK(tensor_data_error(type("BOOL"), 2, "\0\1", 2) == NULL);
    CHECK(tensor_data_error(type("BOOL"), 2, "\0\2", 2) != NULL);
    CHECK(tensor_data_error(type("STRING"), 2, "ab\0\0", 4) == NULL);
    CHECK(tensor_data_error(type("STRING"), 2, "ab\0c", 4) != NULL);
    CHECK(tensor_data_error(type("STRING"), 1, "ab", 2) != NULL);
}

static bool reads(const struct dtype *t, const char *text, long long value) {
    char element[8];
    char *exact = exact_copy(text, strlen(text));
    bool good = element_from_text(t, exact, strlen(text), element) && element_integer(t, element) == value;
    free(exact);
    return good;
}

static void integers_keep_their_value_at_the_edges_of_their_type(void) {
    const struct {
        const char *name, *least, *most, *below, *above;
    } edges[] = {
        {"INT8", "-128", "127", "-129", "128"},
        {"INT16", "-32768", "32767", "-32769", "32768"},
        {"INT32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
        {"INT64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809", "9223372036854775808"},
        {"UINT8", "0", "255", "-1", "256"},
        {"UINT16", "0", "65535", "-1", "65536"},
        {"UINT32", "0", "4294967295", "-1", "4294967296"},
        {"UINT64", "0", "18446744073709551615", "-1", "18446744073709551616"},
        {"BOOL", "0", "1", "-1", "2"}};
    char element[8];
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const struct dtype *t = type(edges[i].name);
        CHECK(reads(t, edges[i].least, strtoll(edges[i].least, NULL, 10)));
        CHECK(reads(t, edges[i].most, (long long)strtoull(edges[i].most, NULL, 10)));
        CHECK(!element_from_text(t, edges[i].below, strlen(edges[i].below), element));
        CHECK(!element_from_text(t, edges[i].above, strlen(edges[i].above), element));
    }
    CHECK(element_from_text(type("UINT64"), "9223372036854775808", 19, element) &&
          element_is_large(type("UINT64"), element));
    CHECK(element_from_text(type("UINT64"), "9223372036854775807", 19, element) &&
          !element_is_large(type("UINT64"), element));
}

static void what_is_no_whole_number_is_refused(void) {
    const char *bad[] = {"", "-", "1.5", "1e3", " 1", "1 ", "+1", "0x1", "--1", "999999999999999999999"};
    char element[8];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!element_from_text(type("INT64"), bad[i], strlen(bad[i]), element));
}

static void half_floats_round_to_the_nearest_and_come_back(void) {
    const struct {
        double value;
        unsigned bits;
    } halves[] = {{0.0, 0},
                  {-0.0, 0x8000},
                  {1.0, 0x3c00},
                  {-2.5, 0xc100},
                  {65504, 0x7bff},
                  {65519, 0x7bff},
                  {65520, 0x7c00},
                  {0x1p-24, 1},
                  {0x1p-25, 0},
                  {0x1.8p-24, 2},
                  {0x1p-14, 0x400},
                  {1 + 0x1p-11, 0x3c00},
                  {1 + 3 * 0x1p-11, 0x3c02},
                  {2047.9999, 0x6800},
                  {INFINITY, 0x7c00}};
    char element[8];
    unsigned short bits;
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        element_from_double(type("FLOAT16"), halves[i].value, element);
        memcpy(&bits, element, 2);
        CHECK(bits == halves[i].bits);
    }
    for (unsigned all = 0; all < 65536; all++) { /* every number of both types that is no NaN */
        const struct dtype *types[] = {type("FLOAT16"), type("BFLOAT16")};
        for (int i = 0; i < 2; i++) {
            unsigned short before = (unsigned short)all, after;
            double value = element_double(types[i], (char *)&before);
            element_from_double(types[i], value, (char *)&after);
            CHECK(isnan(value) ? isnan(element_double(types[i], (char *)&after)) : before == after);
        }
    }
    element_from_double(type("BFLOAT16"), 1 + 0x1p-8, element); /* half way: to the even one */
    CHECK(element_double(type("BFLOAT16"), element) == 1.0);
}

static void shapes_are_numbers_between_commas(void) {
    long long shape[TENSOR_MAX_RANK];
    CHECK(shape_parse("1,128", 5, shape) == 2 && shape[0] == 1 && shape[1] == 128);
    CHECK(shape_parse("", 0, shape) == 0);
    const char *bad[] = {",", "1,", ",1", "1,,2", "a", "1 2", "-1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(shape_parse(bad[i], strlen(bad[i]), shape) == -1);
}

static void percentiles_are_never_below_the_truth_and_at_most_a_quarter_above(void) {
    struct latency latency = {0};
    for (uint64_t us = 1; us <= 100000; us++) latency_add(&latency, us);
    uint64_t half = latency_percentile(&latency, 0.5), most = latency_percentile(&latency, 0.99);
    CHECK(half >= 50000 && half <= 62500);
    CHECK(most >= 99000 && most <= 123750);
    latency_add(&latency, UINT64_MAX);
    CHECK(latency_percentile(&latency, 1.0) > 0);
}

int main(void) {
    RUN(types_are_found_in_any_case_and_unknown_ones_are_not);
    RUN(sizes_that_overflow_are_refused);
    RUN(dimensions_below_one_are_refused_and_none_means_one_element);
    RUN(data_must_have_exactly_its_length);
    RUN(integers_keep_their_value_at_the_edges_of_their_type);
    RUN(what_is_no_whole_number_is_refused);
    RUN(half_floats_round_to_the_nearest_and_come_back);
    RUN(shapes_are_numbers_between_commas);
    RUN(percentiles_are_never_below_the_truth_and_at_most_a_quarter_above);
    return 0;
}
