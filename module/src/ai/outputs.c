/* The tensors of a frame -> keys. */
#include "ai/outputs.h"

#include <string.h>

#include "ai/tensor_layout.h"
#include "core/call.h"

struct output {
    const struct dtype *dtype; /* static; NULL: a map or a sequence, of which nothing is stored */
    long long shape[TENSOR_MAX_RANK];
    int rank;
    struct frame_bytes data; /* borrowed from the frame */
};

/* The text up to `end` or to the layout's own, which is taken off it. */
static struct frame_bytes next_word(struct frame_bytes *layout, char end) {
    const char *stop = memchr(layout->data, end, layout->length);
    struct frame_bytes word = {.data = layout->data, .length = stop ? (size_t)(stop - layout->data) : layout->length};
    size_t width = word.length + (stop ? 1 : 0);
    layout->data += width;
    layout->length -= width;
    return word;
}

/* The next tensor, checked. False where layout and data disagree. */
static bool read_output(struct outputs *outputs, struct output *o) {
    size_t elements;
    struct frame_bytes shape = next_word(&outputs->layout, ';'), name = next_word(&shape, ' ');
    if (!frame_list_next(&outputs->data, &o->data)) return false;
    o->dtype = dtype_find(name.data, name.length);
    if (frame_bytes_equal(&name, "NONE")) return o->data.length == 0 && shape.length == 0;
    o->rank = shape_parse(shape.data, shape.length, o->shape);
    return o->dtype && o->rank >= 0 && tensor_elements(o->dtype, o->shape, o->rank, &elements) &&
           tensor_data_error(o->dtype, elements, o->data.data, o->data.length) == NULL;
}

/* By AI.TENSORSET, which replicates itself. */
static bool write_output(RedisString *key, const struct output *o, char *error, size_t error_size) {
    RedisString *argv[TENSOR_MAX_RANK + 4];
    size_t n = 0;
    argv[n++] = redis.HoldString(NULL, key);
    argv[n++] = redis.CreateString(NULL, o->dtype->name, strlen(o->dtype->name));
    for (int i = 0; i < o->rank; i++) {
        char digits[24];
        shape_text(&o->shape[i], 1, digits, sizeof digits);
        argv[n++] = redis.CreateString(NULL, digits, strlen(digits));
    }
    argv[n++] = redis.CreateString(NULL, "BLOB", 4);
    argv[n++] = redis.CreateString(NULL, o->data.data, o->data.length);
    bool good = call_own("AI.TENSORSET", argv, n, "S", error, error_size);
    while (n > 0) redis.FreeString(NULL, argv[--n]);
    return good;
}

/* A look ahead, so that none is written where one is wrong. */
bool outputs_are_valid(struct outputs outputs, size_t count) {
    struct output o;
    while (count-- > 0)
        if (!read_output(&outputs, &o)) return false;
    return outputs.layout.length == 0;
}

/* All of them, or up to the first that Redis refuses. */
bool outputs_write(struct outputs *outputs, RedisString **keys, size_t count, char *error, size_t error_size) {
    struct output o;
    for (size_t i = 0; i < count; i++) {
        read_output(outputs, &o);
        if (o.dtype && !write_output(keys[i], &o, error, error_size)) return false;
    }
    return true;
}
