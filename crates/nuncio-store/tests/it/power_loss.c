/* A disk that loses what was not synced: preloaded into a process that is to be killed.
 *
 * Files whose name ends in .db or .db-wal live in memory. A write reaches the disk with the next
 * sync of its file; by a seed, some pages reach it at once, as the cache of a real disk may have it.
 * What memory holds when the process is killed is what a power cut loses.
 *
 * POWER_LOSS_SEED: which pages come early.
 * POWER_LOSS_FAULT: a file; while it is there, its first word says what fails: "full" (ENOSPC on
 * writes and growth), "broken" (EIO on writes and syncs), "read-only" (EROFS on writes).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define FILES 64
#define FDS 4096

struct file {
    int used;
    dev_t device;
    ino_t inode;
    unsigned char *bytes;
    size_t size, capacity;
    unsigned char *dirty; /* by page */
    int resized;
};

static struct file files[FILES];
static struct file *by_fd[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t chance;

static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fstat)(int, struct stat *);

__attribute__((constructor)) static void begin(void) {
    const char *seed = getenv("POWER_LOSS_SEED");
    chance = seed ? strtoull(seed, NULL, 10) * 2654435761u + 1 : 1;
    real_open = dlsym(RTLD_NEXT, "open64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fstat = dlsym(RTLD_NEXT, "fstat64");
}

static int ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static int comes_early(void) {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (chance >> 60) == 0;
}

/* The error to give for a write or a sync, 0 if none. */
static int fault(int is_sync) {
    const char *path = getenv("POWER_LOSS_FAULT");
    char word[16] = "";
    int fd = path ? real_open(path, O_RDONLY) : -1;
    if (fd < 0) return 0;
    ssize_t got = real_pread(fd, word, sizeof word - 1, 0);
    real_close(fd);
    if (got <= 0) return 0;
    if (strncmp(word, "broken", 6) == 0) return EIO;
    if (is_sync) return 0;
    if (strncmp(word, "full", 4) == 0) return ENOSPC;
    if (strncmp(word, "read-only", 9) == 0) return EROFS;
    return 0;
}

static void reserve(struct file *file, size_t size) {
    if (size <= file->capacity) return;
    size_t capacity = file->capacity ? file->capacity : 1 << 20;
    while (capacity < size) capacity *= 2;
    file->bytes = realloc(file->bytes, capacity);
    file->dirty = realloc(file->dirty, capacity / PAGE);
    if (!file->bytes || !file->dirty) abort();
    memset(file->bytes + file->capacity, 0, capacity - file->capacity);
    memset(file->dirty + file->capacity / PAGE, 0, (capacity - file->capacity) / PAGE);
    file->capacity = capacity;
}

static void resize(struct file *file, size_t size) {
    reserve(file, size);
    if (size < file->size) memset(file->bytes + size, 0, file->size - size);
    file->size = size;
}

/* Takes a file that has just been opened into memory, unless it is there already. */
static void adopt(int fd) {
    struct stat at;
    if (fd >= FDS || real_fstat(fd, &at) != 0) return;
    struct file *file = NULL, *empty = NULL;
    for (int i = 0; i < FILES && !file; i++) {
        if (files[i].used && files[i].device == at.st_dev && files[i].inode == at.st_ino) file = &files[i];
        if (!files[i].used && !empty) empty = &files[i];
    }
    if (!file) {
        if (!empty) abort();
        file = empty;
        memset(file, 0, sizeof *file);
        file->used = 1;
        file->device = at.st_dev;
        file->inode = at.st_ino;
        resize(file, at.st_size);
        if (real_pread(fd, file->bytes, at.st_size, 0) != at.st_size) abort();
    }
    by_fd[fd] = file;
}

static struct file *of(int fd) { return fd >= 0 && fd < FDS ? by_fd[fd] : NULL; }

static void page_to_disk(int fd, struct file *file, size_t page) {
    size_t start = page * PAGE;
    if (start >= file->size) return;
    size_t length = file->size - start < PAGE ? file->size - start : PAGE;
    if (real_pwrite(fd, file->bytes + start, length, start) != (ssize_t)length) abort();
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    int fd = real_open(path, flags, mode);
    if (fd >= 0 && (ends_with(path, ".db") || ends_with(path, ".db-wal"))) {
        pthread_mutex_lock(&lock);
        adopt(fd);
        pthread_mutex_unlock(&lock);
    }
    return fd;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return open64(path, flags, mode);
}

int close(int fd) {
    if (of(fd)) {
        pthread_mutex_lock(&lock);
        by_fd[fd] = NULL;
        pthread_mutex_unlock(&lock);
    }
    return real_close(fd);
}

ssize_t pread64(int fd, void *into, size_t count, off_t offset) {
    struct file *file = of(fd);
    if (!file) return real_pread(fd, into, count, offset);
    pthread_mutex_lock(&lock);
    size_t left = (size_t)offset < file->size ? file->size - offset : 0;
    size_t length = count < left ? count : left;
    memcpy(into, file->bytes + offset, length);
    pthread_mutex_unlock(&lock);
    return length;
}

ssize_t pread(int fd, void *into, size_t count, off_t offset) { return pread64(fd, into, count, offset); }

ssize_t pwrite64(int fd, const void *from, size_t count, off_t offset) {
    struct file *file = of(fd);
    if (!file) return real_pwrite(fd, from, count, offset);
    int error = fault(0);
    if (error) {
        errno = error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    if (offset + count > file->size) {
        resize(file, offset + count);
        file->resized = 1;
    }
    memcpy(file->bytes + offset, from, count);
    for (size_t page = offset / PAGE; count && page <= (offset + count - 1) / PAGE; page++) {
        file->dirty[page] = 1;
        if (comes_early()) page_to_disk(fd, file, page);
    }
    pthread_mutex_unlock(&lock);
    return count;
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t offset) { return pwrite64(fd, from, count, offset); }

int ftruncate64(int fd, off_t size) {
    struct file *file = of(fd);
    if (!file) return real_ftruncate(fd, size);
    int error = fault(0);
    if (error) {
        errno = error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    resize(file, size);
    file->resized = 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fsync(int fd) {
    struct file *file = of(fd);
    if (!file) return real_fsync(fd);
    int error = fault(1);
    if (error) {
        errno = error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    if (file->resized && real_ftruncate(fd, file->size) != 0) abort();
    file->resized = 0;
    for (size_t page = 0; page * PAGE < file->size; page++) {
        if (file->dirty[page]) page_to_disk(fd, file, page);
        file->dirty[page] = 0;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int fdatasync(int fd) { return fsync(fd); }

int fstat64(int fd, struct stat64 *at) {
    int result = real_fstat(fd, (struct stat *)at);
    struct file *file = of(fd);
    if (result == 0 && file) {
        pthread_mutex_lock(&lock);
        at->st_size = file->size;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

int fstat(int fd, struct stat *at) { return fstat64(fd, (struct stat64 *)at); }
