#include <string.h>

#include "check.h"
#include "latency.h"
#include "tensor_layout.h"

static const struct dtype *type(const char *name) { return dtype_find(name, strlen(name)); }

static void types_are_found_in_any_case_and_unknown_ones_are_not(void) {
    CHECK(type("FLOAT") && type("float") == type("FLOAT") && type("STRING"));
    CHECK(!type("FLOAT16") && !type("UINT32") && !type("") && !type("FLOA"));
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

static void integers_keep_their_value_at_the_edges_of_their_type(void) {
    const struct {
        const char *name;
        long long least, most;
    } edges[] = {{"INT8", -128, 127}, {"INT16", -32768, 32767}, {"INT32", -2147483648LL, 2147483647LL}, {"UINT8", 0, 255}, {"UINT16", 0, 65535}, {"BOOL", 0, 1}};
    char element[8];
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const struct dtype *t = type(edges[i].name);
        CHECK(element_from_integer(t, edges[i].least, element) && element_integer(t, element) == edges[i].least);
        CHECK(element_from_integer(t, edges[i].most, element) && element_integer(t, element) == edges[i].most);
        CHECK(!element_from_integer(t, edges[i].least - 1, element) && !element_from_integer(t, edges[i].most + 1, element));
    }
    long long least = -9223372036854775807LL - 1;
    CHECK(element_from_integer(type("INT64"), least, element) && element_integer(type("INT64"), element) == least);
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
    RUN(shapes_are_numbers_between_commas);
    RUN(percentiles_are_never_below_the_truth_and_at_most_a_quarter_above);
    return 0;
}
