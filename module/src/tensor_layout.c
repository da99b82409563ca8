#include "tensor_layout.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct dtype DTYPES[] = {{"FLOAT", DTYPE_FLOAT, 4},     {"DOUBLE", DTYPE_FLOAT, 8},    {"INT8", DTYPE_SIGNED, 1},
                                      {"INT16", DTYPE_SIGNED, 2},    {"INT32", DTYPE_SIGNED, 4},    {"INT64", DTYPE_SIGNED, 8},
                                      {"UINT8", DTYPE_UNSIGNED, 1},  {"UINT16", DTYPE_UNSIGNED, 2}, {"BOOL", DTYPE_BOOL, 1},
                                      {"STRING", DTYPE_STRING, 0}};

const struct dtype *dtype_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof *DTYPES; i++)
        if (strlen(DTYPES[i].name) == length && strncasecmp(DTYPES[i].name, name, length) == 0) return &DTYPES[i];
    return NULL;
}

bool tensor_elements(const struct dtype *dtype, const long long *shape, int rank, size_t *elements) {
    size_t total = 1;
    size_t size = dtype->size ? dtype->size : 1;
    if (rank < 0 || rank > TENSOR_MAX_RANK) return false;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(total, (size_t)shape[i], &total) || total > TENSOR_MAX_BYTES / size) return false;
    *elements = total;
    return true;
}

static size_t count_strings(const char *data, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += data[i] == '\0';
    return count;
}

const char *tensor_data_error(const struct dtype *dtype, size_t elements, const char *data, size_t length) {
    if (dtype->kind == DTYPE_STRING) {
        if (count_strings(data, length) != elements || (length > 0 && data[length - 1] != '\0'))
            return "Number of string elements in data blob does not match tensor length";
        return NULL;
    }
    if (length != elements * dtype->size) return "data length does not match tensor shape and type";
    for (size_t i = 0; dtype->kind == DTYPE_BOOL && i < length; i++)
        if ((unsigned char)data[i] > 1) return "BOOL tensor elements must be 0 or 1";
    return NULL;
}

int shape_parse(const char *text, size_t length, long long shape[TENSOR_MAX_RANK]) {
    int rank = 0;
    size_t i = 0;
    if (length == 0) return 0;
    while (true) {
        size_t start = i;
        long long value = 0;
        for (; i < length && text[i] >= '0' && text[i] <= '9' && i - start < 18; i++) value = value * 10 + (text[i] - '0');
        if (i == start || rank == TENSOR_MAX_RANK) return -1;
        shape[rank++] = value;
        if (i == length) return rank;
        if (text[i++] != ',') return -1;
    }
}

void shape_text(const long long *shape, int rank, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && at < size; i++) at += (size_t)snprintf(text + at, size - at, i ? ",%lld" : "%lld", shape[i]);
}

bool element_from_integer(const struct dtype *dtype, long long value, char *to) {
    if (dtype->kind == DTYPE_FLOAT) return element_from_double(dtype, (double)value, to);
    if (dtype->kind == DTYPE_BOOL && (value < 0 || value > 1)) return false;
    if (dtype->kind == DTYPE_SIGNED && dtype->size < 8) {
        long long limit = 1LL << (8 * dtype->size - 1);
        if (value < -limit || value >= limit) return false;
    }
    if (dtype->kind == DTYPE_UNSIGNED && (value < 0 || value >= 1LL << (8 * dtype->size))) return false;
    memcpy(to, &value, dtype->size); /* little endian machines only, as is the ABI that this is built for */
    return true;
}

bool element_from_double(const struct dtype *dtype, double value, char *to) {
    float single = (float)value;
    if (dtype->kind != DTYPE_FLOAT) return false;
    if (dtype->size == 4)
        memcpy(to, &single, 4);
    else
        memcpy(to, &value, 8);
    return true;
}

long long element_integer(const struct dtype *dtype, const char *from) {
    unsigned long long raw = 0;
    memcpy(&raw, from, dtype->size);
    if (dtype->kind == DTYPE_SIGNED && dtype->size < 8) {
        unsigned long long sign = 1ULL << (8 * dtype->size - 1);
        return (long long)((raw ^ sign) - sign);
    }
    return (long long)raw;
}

double element_double(const struct dtype *dtype, const char *from) {
    float single;
    double value;
    if (dtype->size == 4) {
        memcpy(&single, from, 4);
        return single;
    }
    memcpy(&value, from, 8);
    return value;
}
