#include "core/frame.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Little endian, at any address. */
static uint32_t read_u32(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t read_u64(const char *bytes) { return (uint64_t)read_u32(bytes) | (uint64_t)read_u32(bytes + 4) << 32; }

static void write_u32(char *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++) bytes[i] = (char)(value >> (8 * i) & 0xff);
}

/* The frame at the front of these bytes. */
enum frame_result frame_decode(const char *data, size_t length, struct frame *frame, size_t *size) {
    *size = 0;
    if (length < FRAME_HEADER) return FRAME_PARTIAL;
    uint32_t payload = read_u32(data);
    const unsigned char *head = (const unsigned char *)data;
    unsigned version = head[6] | (unsigned)head[7] << 8;
    if (payload > FRAME_MAX_PAYLOAD || head[5] != 0 || version != FRAME_VERSION) return FRAME_MALFORMED;
    *size = FRAME_HEADER + (size_t)payload;
    if (length < *size) return FRAME_PARTIAL;
    frame->type = head[4];
    frame->id = read_u64(data + 8);
    frame->payload = data + FRAME_HEADER;
    frame->length = payload;
    return FRAME_COMPLETE;
}

/* Whether some room takes this type is told when it takes effect. */
bool frame_from_worker_is_valid(const struct frame *frame) {
    struct frame_list list;
    if (frame->type < FRAME_READY) return false;
    if (frame->type == FRAME_REPLY) return true; /* RESP, of which one bad value costs its own request alone */
    return frame_list_open(frame->payload, frame->length, &list);
}

/* The 16 bytes before each payload (docs/frames.md). */
void frame_header(char header[FRAME_HEADER], uint8_t type, uint64_t id, size_t payload) {
    assert(payload <= FRAME_MAX_PAYLOAD);
    write_u32(header, (uint32_t)payload);
    header[4] = (char)type;
    header[5] = 0;
    header[6] = FRAME_VERSION;
    header[7] = 0;
    write_u32(header + 8, (uint32_t)(id & 0xffffffff));
    write_u32(header + 12, (uint32_t)(id >> 32));
}

/* Length and count are filled in by frame_end. */
void frame_begin(struct frame_writer *writer, uint8_t type, uint64_t id) {
    char header[FRAME_HEADER + 4] = {0}; /* and the place of the item count */
    *writer = (struct frame_writer){0};
    frame_header(header, type, id, 0);
    buffer_add(&writer->buffer, header, sizeof header);
}

void frame_item(struct frame_writer *writer, const void *data, size_t length) {
    assert(writer->elsewhere == 0 && length <= FRAME_MAX_PAYLOAD);
    buffer_add_u32(&writer->buffer, (uint32_t)length);
    buffer_add(&writer->buffer, data, length);
    writer->items++;
}

void frame_text(struct frame_writer *writer, const char *text) { frame_item(writer, text, strlen(text)); }

/* Numbers travel as decimal digits. */
void frame_number(struct frame_writer *writer, long long number) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", number);
    frame_item(writer, digits, (size_t)length);
}

/* The last item may lie outside: a model's file is sent from its key's memory. */
void frame_item_elsewhere(struct frame_writer *writer, size_t length) {
    assert(writer->elsewhere == 0 && length <= FRAME_MAX_PAYLOAD);
    buffer_add_u32(&writer->buffer, (uint32_t)length);
    writer->elsewhere = length;
    writer->items++;
}

/* The frame is complete: its length and its count are known. */
void frame_end(struct frame_writer *writer) {
    size_t payload = writer->buffer.length - FRAME_HEADER + writer->elsewhere;
    assert(payload <= FRAME_MAX_PAYLOAD);
    write_u32(writer->buffer.data, (uint32_t)payload);
    write_u32(writer->buffer.data + FRAME_HEADER, writer->items);
}

/* Checks all lengths once, so that frame_list_next can't leave the payload. */
bool frame_list_open(const char *payload, size_t length, struct frame_list *list) {
    if (length < 4) return false;
    *list = (struct frame_list){.at = payload + 4, .end = payload + length, .left = read_u32(payload)};
    const char *at = list->at;
    for (uint32_t i = 0; i < list->left; i++) {
        if (list->end - at < 4) return false;
        size_t item = read_u32(at);
        at += 4;
        if ((size_t)(list->end - at) < item) return false;
        at += item;
    }
    return at == list->end;
}

/* The next item, borrowed from the payload. */
bool frame_list_next(struct frame_list *list, struct frame_bytes *item) {
    if (list->left == 0) return false;
    item->length = read_u32(list->at);
    item->data = list->at + 4;
    list->at += 4 + item->length;
    list->left--;
    return true;
}

/* Decimal digits only: no blanks, no plus sign. */
bool frame_bytes_number(const struct frame_bytes *item, long long *number) {
    size_t i = 0;
    bool negative = item->length > 0 && item->data[0] == '-';
    long long value = 0;
    if (negative) i++;
    if (i == item->length || item->length - i > 18) return false; /* 18 digits always fit */
    for (; i < item->length; i++) {
        if (item->data[i] < '0' || item->data[i] > '9') return false;
        value = value * 10 + (item->data[i] - '0');
    }
    *number = negative ? -value : value;
    return true;
}

bool frame_list_number(struct frame_list *list, long long *number) {
    struct frame_bytes item;
    return frame_list_next(list, &item) && frame_bytes_number(&item, number);
}

/* The next item as eight bytes, little endian. */
bool frame_list_u64(struct frame_list *list, uint64_t *number) {
    struct frame_bytes item;
    if (!frame_list_next(list, &item) || item.length != 8) return false;
    *number = read_u64(item.data);
    return true;
}

bool frame_bytes_equal(const struct frame_bytes *item, const char *text) {
    return item->length == strlen(text) && memcmp(item->data, text, item->length) == 0;
}
