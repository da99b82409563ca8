#include <string.h>

#include "check.h"
#include "core/frame.h"

static struct frame_writer sample(void) {
    struct frame_writer w;
    frame_begin(&w, FRAME_CALL, 0x1122334455667788ULL);
    frame_text(&w, "");
    frame_item(&w, "a\0b", 3);
    frame_number(&w, -42);
    frame_item(&w, "\1\0\0\0\2\0\0\x80", 8);
    frame_end(&w);
    return w;
}

static void a_written_frame_reads_back_the_same(void) {
    struct frame_writer w = sample();
    struct frame frame;
    struct frame_list list;
    struct frame_bytes item;
    size_t wanted;
    long long number;
    uint64_t raw;
    CHECK(frame_decode(w.buffer.data, w.buffer.length, &frame, &wanted) == FRAME_COMPLETE);
    CHECK(wanted == w.buffer.length && frame.type == FRAME_CALL && frame.id == 0x1122334455667788ULL);
    CHECK(frame_list_open(frame.payload, frame.length, &list) && list.left == 4);
    CHECK(frame_list_next(&list, &item) && item.length == 0);
    CHECK(frame_list_next(&list, &item) && item.length == 3 && memcmp(item.data, "a\0b", 3) == 0);
    CHECK(frame_list_number(&list, &number) && number == -42);
    CHECK(frame_list_u64(&list, &raw) && raw == 0x8000000200000001ULL);
    CHECK(!frame_list_next(&list, &item));
    buffer_free(&w.buffer);
}

static void every_prefix_of_a_frame_is_partial(void) {
    struct frame_writer w = sample();
    struct frame frame;
    size_t wanted;
    for (size_t n = 0; n < w.buffer.length; n++) {
        char *data = exact_copy(w.buffer.data, n);
        CHECK(frame_decode(data, n, &frame, &wanted) == FRAME_PARTIAL);
        CHECK(wanted == (n < FRAME_HEADER ? 0 : w.buffer.length));
        free(data);
    }
    buffer_free(&w.buffer);
}

static void a_header_that_promises_too_much_is_malformed_before_its_payload_comes(void) {
    char header[FRAME_HEADER];
    struct frame frame;
    size_t wanted;
    frame_header(header, FRAME_REPLY, 1, FRAME_MAX_PAYLOAD);
    CHECK(frame_decode(header, sizeof header, &frame, &wanted) == FRAME_PARTIAL);
    header[0] = 1; /* 1 GiB and one byte */
    CHECK(frame_decode(header, sizeof header, &frame, &wanted) == FRAME_MALFORMED);
}

static void another_version_or_unknown_flags_are_malformed(void) {
    char header[FRAME_HEADER];
    struct frame frame;
    size_t wanted;
    for (int place = 5; place <= 7; place++) {
        frame_header(header, FRAME_REPLY, 1, 0);
        header[place] = 9;
        CHECK(frame_decode(header, sizeof header, &frame, &wanted) == FRAME_MALFORMED);
    }
}

static void a_list_that_lies_about_its_lengths_is_refused(void) {
    const struct {
        const char *bytes;
        size_t length;
    } bad[] = {{"", 0},
               {"\1\0\0", 3},
               {"\1\0\0\0", 4},
               {"\1\0\0\0\5\0\0\0abc", 11},
               {"\1\0\0\0\1\0\0\0ab", 10},
               {"\xff\xff\xff\xff\0\0\0\0", 8},
               {"\1\0\0\0\xff\xff\xff\xff", 8},
               {"\0\0\0\0x", 5}};
    struct frame_list list;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *data = exact_copy(bad[i].bytes, bad[i].length);
        CHECK(!frame_list_open(data, bad[i].length, &list));
        free(data);
    }
}

static void numbers_are_decimal_digits_only(void) {
    const char *bad[] = {"", "-", "1 ", " 1", "0x1", "1.5", "9999999999999999999", "+1"};
    struct frame_bytes item;
    long long number;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        item = (struct frame_bytes){.data = bad[i], .length = strlen(bad[i])};
        CHECK(!frame_bytes_number(&item, &number));
    }
    item = (struct frame_bytes){.data = "-999999999999999999", .length = 19};
    CHECK(frame_bytes_number(&item, &number) && number == -999999999999999999LL);
}

static void types_of_the_module_are_refused(void) {
    const char empty_list[] = {0, 0, 0, 0};
    for (int type = 0; type < 256; type++) {
        struct frame frame = {.type = (uint8_t)type, .payload = empty_list, .length = 4};
        CHECK(frame_from_worker_is_valid(&frame) == (type >= FRAME_READY));
    }
}

static void damaged_frames_never_read_outside_their_bytes(void) {
    struct frame_writer w = sample();
    uint32_t random = 12345;
    for (int round = 0; round < 20000; round++) {
        size_t length = next_random(&random) % (w.buffer.length + 1);
        char *data = exact_copy(w.buffer.data, length);
        struct frame frame;
        struct frame_list list;
        struct frame_bytes item;
        size_t wanted;
        for (int i = 0; i < 3 && length; i++) data[next_random(&random) % length] = (char)next_random(&random);
        if (frame_decode(data, length, &frame, &wanted) == FRAME_COMPLETE &&
            frame_list_open(frame.payload, frame.length, &list))
            while (frame_list_next(&list, &item)) CHECK(item.data + item.length <= data + length);
        free(data);
    }
    buffer_free(&w.buffer);
}

static void an_item_sent_from_elsewhere_counts_in_the_length(void) {
    struct frame_writer w;
    struct frame frame;
    size_t wanted;
    frame_begin(&w, FRAME_CALLED, 7);
    frame_text(&w, "id");
    frame_item_elsewhere(&w, 5);
    frame_end(&w);
    buffer_add(&w.buffer, "bytes", 5);
    CHECK(frame_decode(w.buffer.data, w.buffer.length, &frame, &wanted) == FRAME_COMPLETE);
    struct frame_list list;
    struct frame_bytes item;
    CHECK(frame_list_open(frame.payload, frame.length, &list) && frame_list_next(&list, &item) &&
          frame_list_next(&list, &item));
    CHECK(frame_bytes_equal(&item, "bytes"));
    buffer_free(&w.buffer);
}

static void a_buffer_keeps_its_bytes_while_it_grows_and_shrinks(void) {
    struct buffer buffer = {0};
    for (int i = 0; i < 3000; i++) buffer_add(&buffer, "0123456789", 10);
    buffer_consume(&buffer, 29995);
    CHECK(buffer.length == 5 && memcmp(buffer.data, "56789", 5) == 0);
    buffer_consume(&buffer, 5);
    CHECK(buffer.length == 0);
    buffer_free(&buffer);
}

int main(void) {
    RUN(a_written_frame_reads_back_the_same);
    RUN(every_prefix_of_a_frame_is_partial);
    RUN(a_header_that_promises_too_much_is_malformed_before_its_payload_comes);
    RUN(another_version_or_unknown_flags_are_malformed);
    RUN(a_list_that_lies_about_its_lengths_is_refused);
    RUN(numbers_are_decimal_digits_only);
    RUN(types_of_the_module_are_refused);
    RUN(damaged_frames_never_read_outside_their_bytes);
    RUN(an_item_sent_from_elsewhere_counts_in_the_length);
    RUN(a_buffer_keeps_its_bytes_while_it_grows_and_shrinks);
    return 0;
}
