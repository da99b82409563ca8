/* Element types and sizes of tensors. Pure: no Redis. */
#ifndef SHARDQA_TENSOR_LAYOUT_H
#define SHARDQA_TENSOR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

enum { TENSOR_MAX_RANK = 32 };
#define TENSOR_MAX_BYTES ((size_t)512 << 20) /* a client can't send or receive a longer string */

enum dtype_kind { DTYPE_FLOAT, DTYPE_BFLOAT, DTYPE_SIGNED, DTYPE_UNSIGNED, DTYPE_BOOL, DTYPE_STRING };

struct dtype {
    const char *name; /* RedisAI's; FLOAT16, BFLOAT16, UINT32 and UINT64 it did not have */
    enum dtype_kind kind;
    size_t size; /* bytes of one element; STRING 0 */
};

const struct dtype *dtype_find(const char *name, size_t length); /* case does not matter; NULL: no such type */

/* The number of elements, or false when it or its bytes pass TENSOR_MAX_BYTES or a dimension is
 * below one. */
bool tensor_elements(const struct dtype *dtype, const long long *shape, int rank, size_t *elements);

/* Does `length` bytes of `data` fit? NULL, or RedisAI's error text without ERR. */
const char *tensor_data_error(const struct dtype *dtype, size_t elements, const char *data, size_t length);

/* "2,128" -> numbers; -1 where it is malformed or has too many. "" is rank 0. */
int shape_parse(const char *text, size_t length, long long shape[TENSOR_MAX_RANK]);
void shape_text(const long long *shape, int rank, char *text, size_t size);

bool dtype_is_real(const struct dtype *dtype); /* FLOAT, DOUBLE, FLOAT16, BFLOAT16 */

/* Reads one element from text; false where that is no number of the type. Reals:
 * element_from_double. */
unsigned long long element_largest(const struct dtype *dtype, bool negative); /* absolute, of an integer type */
bool element_from_text(const struct dtype *dtype, const char *text, size_t length, char *to);
void element_from_double(const struct dtype *dtype, double value, char *to); /* rounds to the nearest, ties to even */
long long element_integer(const struct dtype *dtype, const char *from); /* UINT64 past 2^63 - 1: see element_is_large */
bool element_is_large(const struct dtype *dtype, const char *from);     /* more than a signed 64-bit reply can say */
double element_double(const struct dtype *dtype, const char *from);

#endif
