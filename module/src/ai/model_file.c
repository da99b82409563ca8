#include "ai/model_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/blob.h"
#include "core/state.h"

enum { NAME_LENGTH = 32, NAMES = 8 }; /* hex digits; files of one name whose content differs */
#define SUFFIX ".model"

/* MODELS, or NULL. */
static const char *folder(void) { return shardqa.arguments.models; }

static void log_failure(const char *what) {
    redis.Log(shardqa.ctx, "warning", "a model is kept in memory, since in the folder %s (MODELS) %s: %s", folder(),
              what, strerror(errno));
}

/* ---- names ---- */

static uint64_t mixed(uint64_t hash, uint64_t word, uint64_t factor) {
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 29;
}

/* Not against attackers: content is compared before a file is shared. */
static void name_of(const char *data, size_t length, char name[NAME_LENGTH + 1]) {
    uint64_t a = 0x9e3779b97f4a7c15u ^ length, b = 0xc2b2ae3d27d4eb4fu, word;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        memcpy(&word, data + at, 8);
        a = mixed(a, word, 0xff51afd7ed558ccdu);
        b = mixed(b, word + a, 0xc4ceb9fe1a85ec53u);
    }
    word = 0;
    memcpy(&word, data + at, length - at);
    a = mixed(a, word, 0xff51afd7ed558ccdu);
    b = mixed(b, word + a, 0xc4ceb9fe1a85ec53u);
    snprintf(name, NAME_LENGTH + 1, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
}

/* settle makes names of digits, a point, a digit and the suffix. */
static bool is_name(const char *name) {
    return strspn(name, "0123456789abcdef") == NAME_LENGTH && strlen(name) == NAME_LENGTH + 2 + strlen(SUFFIX) &&
           name[NAME_LENGTH] == '.' && strcmp(name + NAME_LENGTH + 2, SUFFIX) == 0;
}

/* ---- files that are there ---- */

/* NULL where it can't be. */
static char *map(int fd, size_t length) {
    char *data = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

/* Does the path still lead to this descriptor? Somebody may have taken the file away before it was
 * locked. */
static bool is_there(const char *path, int fd) {
    struct stat by_name, by_fd;
    return stat(path, &by_name) == 0 && fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino &&
           by_name.st_dev == by_fd.st_dev;
}

/* Byte by byte: a name may be another content's, or its file damaged. */
static bool has_content(int fd, const char *data, size_t length) {
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size != (off_t)length) return false;
    char *other = map(fd, length);
    bool same = other && memcmp(other, data, length) == 0;
    if (other) munmap(other, length);
    return same;
}

/* -1: there is none, or it went meanwhile. */
static int open_locked(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0 && is_there(path, fd)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Gives the written file its name. 0, or errno: EEXIST where one has it. */
static int give_name(int fd, const char *path) {
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* The locked file with this content: one that is there, or `fd` itself under its name; -1: neither,
 * and errno. */
static int settle(int fd, const char *data, size_t length, char *path, size_t size) {
    char name[NAME_LENGTH + 1];
    name_of(data, length, name);
    for (int i = 0; i < NAMES; i++) {
        snprintf(path, size, "%s/%s.%d" SUFFIX, folder(), name, i);
        for (int attempt = 0; attempt < 2; attempt++) { /* one that is there may go before it is locked */
            int other_fd = open_locked(path);
            if (other_fd >= 0 && has_content(other_fd, data, length)) return other_fd;
            if (other_fd >= 0) {
                close(other_fd);
                break;
            }
            int error = give_name(fd, path);
            if (error == 0 && flock(fd, LOCK_SH | LOCK_NB) == 0) return fd;
            if (error != 0 && error != EEXIST) {
                errno = error;
                return -1;
            }
        }
    }
    errno = EEXIST;
    return -1;
}

static void let_go(int fd, const char *path) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_there(path, fd)) unlink(path);
    close(fd);
}

static void free_mapping(struct blob *blob) {
    munmap(blob->data, blob->length);
    let_go(blob->file->fd, blob->file->path);
    redis.Free(blob->file);
}

/* What a crash left, and nobody has mapped, goes. */
void model_files_sweep(void) {
    if (folder() == NULL) return;
    if (mkdir(folder(), 0755) != 0 && errno != EEXIST) {
        redis.Log(shardqa.ctx, "warning", "the folder %s (MODELS) can't be made: %s; models are kept in memory",
                  folder(), strerror(errno));
        return;
    }
    DIR *all = opendir(folder());
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        char path[PATH_MAX];
        if (!is_name(entry->d_name) ||
            snprintf(path, sizeof path, "%s/%s", folder(), entry->d_name) >= (int)sizeof path)
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0) let_go(fd, path);
    }
    if (all) closedir(all);
}

/* ---- writing ---- */

/* False, and errno. */
static bool write_all(int fd, const char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, data, length < (1 << 30) ? length : 1 << 30);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        length -= (size_t)written;
    }
    return true;
}

/* What is in the file so far, back into memory: the disk is full. */
static void retreat(struct blob_writer *w, const char *why) {
    log_failure(why);
    buffer_reserve(&w->heap, w->length);
    while (w->heap.length < w->length) {
        ssize_t got = pread(w->fd, w->heap.data + w->heap.length, w->length - w->heap.length, (off_t)w->heap.length);
        /* what was just written can't be read: the file is damaged and will be refused */
        if (got <= 0 && errno != EINTR) break;
        if (got > 0) w->heap.length += (size_t)got;
    }
    close(w->fd);
    w->fd = -1;
}

/* `expected` bytes: a file where they are many. */
void blob_begin(struct blob_writer *w, size_t expected) {
    *w = (struct blob_writer){.fd = -1};
    if (folder() == NULL || expected < (size_t)shardqa.arguments.model_file_bytes) {
        if (expected > 0 && expected <= MODEL_IN_MEMORY) buffer_reserve(&w->heap, expected);
        return;
    }
    w->fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, shardqa.arguments.user ? 0444 : 0400);
    if (w->fd < 0) log_failure("no file can be made");
}

/* A disk that is full leads back into memory. */
void blob_add(struct blob_writer *w, const char *data, size_t length) {
    if (w->fd >= 0 && !write_all(w->fd, data, length)) retreat(w, "a file can't be written");
    if (w->fd < 0) buffer_add(&w->heap, data, length);
    w->length += length;
}

static struct blob *in_memory(struct blob_writer *w) {
    size_t length;
    char *data = buffer_take(&w->heap, &length);
    return blob_new(data, length);
}

/* Its one reference is the caller's. */
struct blob *blob_end(struct blob_writer *w) {
    char path[PATH_MAX];
    if (w->fd < 0) return in_memory(w);
    char *data = w->length > 0 ? map(w->fd, w->length) : NULL;
    int fd = data ? settle(w->fd, data, w->length, path, sizeof path) : -1;
    if (data) munmap(data, w->length); /* its pages were looked at, and count as ours */
    data = fd >= 0 ? map(fd, w->length) : NULL;
    if (data == NULL) {
        if (fd >= 0 && fd != w->fd) close(fd);
        retreat(w, "a file can't be mapped");
        return in_memory(w);
    }
    if (fd != w->fd) close(w->fd);
    struct blob *blob = blob_new(data, w->length);
    blob->file = redis.Alloc(sizeof *blob->file + strlen(path) + 1);
    blob->file->fd = fd;
    blob->free_data = free_mapping;
    memcpy(blob->file->path, path, strlen(path) + 1);
    return blob;
}
