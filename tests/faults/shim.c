/* Preloaded into redis-server or a worker by tests: writes fail at the n-th, the clock is off by so many seconds.
 *
 * A page of memory shared with the test (file SHIM_PAGE) says what to do, so that one process meets many faults. Only files whose
 * path holds one of SHIM_FILES (a|b) count: the append only file, an RDB file, a model. Sockets and logs never do. What the C
 * library writes for fwrite can't be met here, so fwrite itself counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct page { /* as shim.py packs it */
    _Atomic int64_t writes;  /* to such files so far, of all that may fail */
    _Atomic int64_t fail_at; /* the number of the first that fails; 0: none */
    _Atomic int64_t failing; /* how many fail from there on */
    _Atomic int64_t error;   /* errno; ENOSPC writes half of it first where it can */
    _Atomic int64_t seconds; /* that the wall clock is ahead */
    _Atomic int64_t syncs;   /* whether fsync may fail, too */
    _Atomic int64_t names;   /* whether rename and linkat may */
};

static struct page *page;
static const char *wanted;

__attribute__((constructor)) static void open_page(void) {
    const char *path = getenv("SHIM_PAGE");
    if (getenv("SHIM_FILES")) wanted = strdup(getenv("SHIM_FILES")); /* Redis writes its title over the environment */
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) page = mapped;
}

static int is_wanted(const char *path) {
    char words[1024], *rest;
    if (page == NULL || wanted == NULL) return 0;
    snprintf(words, sizeof words, "%s", wanted);
    for (char *word = strtok_r(words, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        if (strstr(path, word)) return 1;
    return 0;
}

static int counts(int fd) {
    char link[64], path[4096];
    if (page == NULL || wanted == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = '\0';
    return is_wanted(path);
}

/* Whether the next one fails; sets errno. */
static int next_fails(void) {
    int64_t number = atomic_fetch_add(&page->writes, 1) + 1, first = atomic_load(&page->fail_at);
    if (first == 0 || number < first || number >= first + atomic_load(&page->failing)) return 0;
    errno = (int)atomic_load(&page->error);
    return 1;
}

static int fails(int fd) { return counts(fd) && next_fails(); }

/* A full disk takes what still fits. */
static int fits_in_part(void) { return errno == ENOSPC && atomic_load(&page->writes) == atomic_load(&page->fail_at); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    static __typeof__(&write) real;
    if (real == NULL) real = REAL(write);
    if (!fails(fd)) return real(fd, data, size);
    return size > 1 && fits_in_part() ? real(fd, data, size / 2) : -1;
}

size_t fwrite(const void *restrict data, size_t size, size_t count, FILE *restrict file) {
    static __typeof__(&fwrite) real;
    if (real == NULL) real = REAL(fwrite);
    if (!fails(fileno(file))) return real(data, size, count, file);
    int error = errno;
    if (fits_in_part()) real(data, 1, size * count / 2, file);
    errno = error;
    return 0;
}

int fflush(FILE *file) {
    static __typeof__(&fflush) real;
    if (real == NULL) real = REAL(fflush);
    return file && fails(fileno(file)) ? EOF : real(file);
}

int rename(const char *from, const char *to) {
    static __typeof__(&rename) real;
    if (real == NULL) real = REAL(rename);
    return page && atomic_load(&page->names) && is_wanted(to) && next_fails() ? -1 : real(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    static __typeof__(&linkat) real;
    if (real == NULL) real = REAL(linkat);
    return page && atomic_load(&page->names) && is_wanted(to) && next_fails() ? -1 : real(from_folder, from, to_folder, to, flags);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    static __typeof__(&pwrite) real;
    if (real == NULL) real = REAL(pwrite);
    return fails(fd) ? -1 : real(fd, data, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    static __typeof__(&writev) real;
    if (real == NULL) real = REAL(writev);
    return fails(fd) ? -1 : real(fd, parts, count);
}

int fsync(int fd) {
    static __typeof__(&fsync) real;
    if (real == NULL) real = REAL(fsync);
    return page && atomic_load(&page->syncs) && fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    static __typeof__(&fdatasync) real;
    if (real == NULL) real = REAL(fdatasync);
    return page && atomic_load(&page->syncs) && fails(fd) ? -1 : real(fd);
}

static int64_t ahead(void) { return page ? atomic_load(&page->seconds) : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static __typeof__(&clock_gettime) real;
    if (real == NULL) real = REAL(clock_gettime);
    int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static __typeof__(&gettimeofday) real;
    if (real == NULL) real = REAL(gettimeofday);
    int result = real(now, zone);
    if (result == 0) now->tv_sec += ahead();
    return result;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
