#include "ai/tensor_layout.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct dtype DTYPES[] = {
    {"FLOAT", DTYPE_FLOAT, 4},     {"DOUBLE", DTYPE_FLOAT, 8},    {"INT8", DTYPE_SIGNED, 1},
    {"INT16", DTYPE_SIGNED, 2},    {"INT32", DTYPE_SIGNED, 4},    {"INT64", DTYPE_SIGNED, 8},
    {"UINT8", DTYPE_UNSIGNED, 1},  {"UINT16", DTYPE_UNSIGNED, 2}, {"BOOL", DTYPE_BOOL, 1},
    {"STRING", DTYPE_STRING, 0},   {"FLOAT16", DTYPE_FLOAT, 2},   {"BFLOAT16", DTYPE_BFLOAT, 2},
    {"UINT32", DTYPE_UNSIGNED, 4}, {"UINT64", DTYPE_UNSIGNED, 8}};

/* In any case. NULL where there is none. */
const struct dtype *dtype_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof *DTYPES; i++)
        if (strlen(DTYPES[i].name) == length && strncasecmp(DTYPES[i].name, name, length) == 0) return &DTYPES[i];
    return NULL;
}

/* False where the shape is no shape or has more than 512 MiB. */
bool tensor_elements(const struct dtype *dtype, const long long *shape, int rank, size_t *elements) {
    size_t total = 1;
    size_t size = dtype->size ? dtype->size : 1;
    if (rank < 0 || rank > TENSOR_MAX_RANK) return false;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(total, (size_t)shape[i], &total) || total > TENSOR_MAX_BYTES / size)
            return false;
    *elements = total;
    return true;
}

/* Each ends with a zero byte. */
static size_t count_strings(const char *data, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += data[i] == '\0';
    return count;
}

/* NULL, or why these bytes are not such a tensor. */
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

/* `1,128`; the rank, or -1. */
int shape_parse(const char *text, size_t length, long long shape[TENSOR_MAX_RANK]) {
    int rank = 0;
    size_t i = 0;
    if (length == 0) return 0;
    while (true) {
        size_t start = i;
        long long value = 0;
        for (; i < length && text[i] >= '0' && text[i] <= '9' && i - start < 18; i++)
            value = value * 10 + (text[i] - '0');
        if (i == start || rank == TENSOR_MAX_RANK) return -1;
        shape[rank++] = value;
        if (i == length) return rank;
        if (text[i++] != ',') return -1;
    }
}

/* What shape_parse reads. */
void shape_text(const long long *shape, int rank, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, i ? ",%lld" : "%lld", shape[i]);
}

bool dtype_is_real(const struct dtype *dtype) { return dtype->kind == DTYPE_FLOAT || dtype->kind == DTYPE_BFLOAT; }

/* Decimal digits with at most 20 of them, a minus before; strtoull would take blanks, plus signs
 * and what follows. */
static bool read_digits(const char *text, size_t length, bool *negative, unsigned long long *value) {
    *negative = length > 0 && text[0] == '-';
    size_t i = *negative;
    *value = 0;
    if (i == length || length - i > 20) return false;
    for (; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(*value, 10ULL, value) ||
            __builtin_add_overflow(*value, (unsigned long long)(text[i] - '0'), value))
            return false;
    }
    return true;
}

unsigned long long element_largest(const struct dtype *dtype, bool negative) {
    unsigned long long all = ~0ULL >> (64 - 8 * dtype->size);
    if (dtype->kind == DTYPE_SIGNED) return (all >> 1) + negative;
    if (negative) return 0;
    return dtype->kind == DTYPE_BOOL ? 1 : all;
}

/* False where the text is no integer of this type. */
bool element_from_text(const struct dtype *dtype, const char *text, size_t length, char *to) {
    unsigned long long value;
    bool negative;
    if (!read_digits(text, length, &negative, &value) || value > element_largest(dtype, negative)) return false;
    if (negative) value = -value;
    memcpy(to, &value, dtype->size); /* little endian machines only, as is the ABI that this is built for */
    return true;
}

/* 10 bits of mantissa, exponents -14 to 15. Scaling by powers of two is exact, rint rounds ties
 * to even. */
static uint16_t half_bits(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    int exponent;
    if (isnan(value)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00; /* half way from the largest, 65504, to the next */
    if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)rint(size * 0x1p24));
    frexp(size, &exponent); /* size = m * 2^exponent, 0.5 <= m < 1 */
    return (uint16_t)(sign | (uint16_t)(((exponent + 13) << 10) + (int)rint(ldexp(size, 11 - exponent))));
}

/* The double of a half: exact. */
static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    double size = exponent == 0    ? mantissa * 0x1p-24
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

/* The upper half of a float. */
static uint16_t bfloat_bits(double value) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    if (isnan(single)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The double of a bfloat16: exact. */
static double bfloat_value(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, 4);
    return single;
}

/* Rounded to the type, ties to even. */
void element_from_double(const struct dtype *dtype, double value, char *to) {
    float single = (float)value;
    uint16_t bits;
    if (dtype->size == 8) {
        memcpy(to, &value, 8);
    } else if (dtype->size == 4) {
        memcpy(to, &single, 4);
    } else {
        bits = dtype->kind == DTYPE_BFLOAT ? bfloat_bits(value) : half_bits(value);
        memcpy(to, &bits, 2);
    }
}

/* Sign extended. A large uint64 wraps: see element_is_large. */
long long element_integer(const struct dtype *dtype, const char *from) {
    unsigned long long raw = 0;
    memcpy(&raw, from, dtype->size);
    if (dtype->kind == DTYPE_SIGNED && dtype->size < 8) {
        unsigned long long sign = 1ULL << (8 * dtype->size - 1);
        return (long long)((raw ^ sign) - sign);
    }
    return (long long)raw;
}

bool element_is_large(const struct dtype *dtype, const char *from) {
    return dtype->kind == DTYPE_UNSIGNED && dtype->size == 8 && element_integer(dtype, from) < 0;
}

/* Exact for all real types. */
double element_double(const struct dtype *dtype, const char *from) {
    uint16_t half;
    float single;
    double value;
    if (dtype->size == 2) {
        memcpy(&half, from, 2);
        return dtype->kind == DTYPE_BFLOAT ? bfloat_value(half) : half_value(half);
    }
    if (dtype->size == 4) {
        memcpy(&single, from, 4);
        return single;
    }
    memcpy(&value, from, 8);
    return value;
}
