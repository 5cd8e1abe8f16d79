/* Intercepts the calls that change files below one folder, for sweep.py: counts them over all processes and
 * threads, records them, and at the n-th one fails, writes a part, interrupts or kills the process group.
 *
 * Loaded with LD_PRELOAD. The state is shared memory that forked processes inherit. One call is done at a
 * time, so that the record has the order of the calls on the disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define RECORD (8 << 20)
#define RENAME_SWAP 2 /* RENAME_EXCHANGE of linux/fs.h */

/* What happens at the n-th call. sweep.py has the same numbers. */
enum { COUNT, KILL, TORN, SHORT, FAIL, DEAD, INTERRUPT };

static struct {
    pthread_mutex_t lock;
    int armed, mode;
    long count, at;
    size_t used;
    char folder[PATH_MAX];
    char record[RECORD];
} *shared;

__attribute__((constructor)) static void begin(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
}

EXPORT void crash_arm(const char *folder, int mode, long at) {
    strncpy(shared->folder, folder, PATH_MAX - 1);
    shared->mode = mode;
    shared->at = at;
    shared->count = shared->used = 0;
    pthread_mutexattr_t kind; /* who holds it may be killed by another process */
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &kind);
    shared->armed = 1;
}

EXPORT long crash_disarm(void) {
    shared->armed = 0;
    return shared->count;
}

EXPORT const char *crash_record(size_t *size) {
    *size = shared->used;
    return shared->record;
}

/* Locking. */

static void take(void) {
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
}

static void give(void) {
    int kept = errno;
    pthread_mutex_unlock(&shared->lock);
    errno = kept;
}

/* Which calls count. */

static int below(const char *path) {
    size_t size = strlen(shared->folder);
    return !strncmp(path, shared->folder, size) && (path[size] == '/' || !path[size]);
}

static int of_handle(int handle, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = 0;
    const char *gone = " (deleted)";
    if (size > 10 && !strcmp(path + size - 10, gone)) return 0;
    return below(path);
}

static int of_path(int folder, const char *path, char *full) {
    if (!shared || !shared->armed || !path) return 0;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
    } else {
        char start[PATH_MAX];
        if (folder == AT_FDCWD ? !getcwd(start, sizeof start) : (of_handle(folder, start), 0)) return 0;
        if (snprintf(full, PATH_MAX, "%s/%s", start, path) >= PATH_MAX) return 0;
    }
    return below(full);
}

static int is_watched(int handle, char *path) {
    return shared && shared->armed && of_handle(handle, path);
}

/* The n-th call. */

static void die(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

enum { GO_ON, PARTLY, REFUSED };

/* Takes the lock, unless the call is refused. */
static int enter(int error, size_t size) {
    take();
    long count = ++shared->count;
    int here = count == shared->at;
    switch (shared->mode) {
    case KILL:
        if (here) die();
        break;
    case TORN:
        if (here && size > 1) return PARTLY;
        if (here) die();
        break;
    case SHORT:
        if (here && size > 1) return PARTLY;
        break;
    case FAIL:
    case DEAD:
        if (here || (shared->mode == DEAD && shared->at && count > shared->at)) {
            give();
            errno = error;
            return REFUSED;
        }
        break;
    case INTERRUPT:
        if (here) kill(0, SIGINT);
        break;
    }
    return GO_ON;
}

/* A line of the record: the call, an offset, a size, two paths; then the bytes. */
static void noted(const char *call, off_t offset, const char *one, const char *other, const void *data,
                  size_t size) {
    int kept = errno;
    size_t left = RECORD - shared->used;
    int head = snprintf(shared->record + shared->used, left, "%s\t%ld\t%zu\t%s\t%s\n", call,
                        (long)offset, size, one, other);
    if (head < 0 || head + size > left) {
        fprintf(stderr, "shim: the record is full\n");
        abort();
    }
    if (size) memcpy(shared->record + shared->used + head, data, size);
    shared->used += head + size;
    errno = kept;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Opening. */

static int opened(int (*real)(int, const char *, int, mode_t), int folder, const char *path, int flags,
                  mode_t mode) {
    char full[PATH_MAX];
    struct stat found;
    if (!(flags & (O_CREAT | O_TRUNC)) || !of_path(folder, path, full)) return real(folder, path, flags, mode);
    int there = !fstatat(folder, path, &found, 0);
    if (there && !((flags & O_TRUNC) && found.st_size)) return real(folder, path, flags, mode);
    if (enter(ENOSPC, 0) == REFUSED) return -1;
    int handle = real(folder, path, flags, mode);
    noted(handle < 0 ? "failed" : there ? "truncate" : "create", 0, full, "", NULL, 0);
    give();
    return handle;
}

static int real_open(int folder, const char *path, int flags, mode_t mode) {
    REAL(openat64);
    return real(folder, path, flags, mode);
}

#define OPENING(name, leading, folder) \
    EXPORT int name(leading const char *path, int flags, ...) { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        return opened(real_open, folder, path, flags, mode); \
    }
#define NONE
#define FOLDER int folder,
OPENING(open, NONE, AT_FDCWD)
OPENING(open64, NONE, AT_FDCWD)
OPENING(openat, FOLDER, folder)
OPENING(openat64, FOLDER, folder)
EXPORT int creat(const char *path, mode_t mode) {
    return opened(real_open, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* Writing. */

static ssize_t written(int handle, const void *data, size_t size, off_t at) {
    REAL(write);
    static __typeof__(&pwrite) placed;
    if (!placed) placed = (__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite64");
    char path[PATH_MAX];
    if (!is_watched(handle, path)) return at < 0 ? real(handle, data, size) : placed(handle, data, size, at);
    int how = enter(ENOSPC, size);
    if (how == REFUSED) return -1;
    if (how == PARTLY) size /= 2;
    ssize_t done = at < 0 ? real(handle, data, size) : placed(handle, data, size, at);
    if (how == PARTLY && shared->mode == TORN) die();
    off_t start = at < 0 ? lseek(handle, 0, SEEK_CUR) - done : at;
    noted(done < 0 ? "failed" : "write", start, path, "", data, done < 0 ? 0 : done);
    give();
    return done;
}

EXPORT ssize_t write(int handle, const void *data, size_t size) { return written(handle, data, size, -1); }
EXPORT ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
    return written(handle, data, size, at);
}
EXPORT ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
    return written(handle, data, size, at);
}
EXPORT ssize_t writev(int handle, const struct iovec *parts, int count) {
    REAL(writev);
    char path[PATH_MAX];
    if (!is_watched(handle, path)) return real(handle, parts, count);
    for (int part = 0; part < count; part++) /* a short write is one that is allowed */
        if (parts[part].iov_len) return write(handle, parts[part].iov_base, parts[part].iov_len);
    return 0;
}
/* Callers of these fall back on reading and writing. */
EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
    REAL(sendfile);
    char path[PATH_MAX];
    if (!is_watched(out, path)) return real(out, in, offset, size);
    errno = EINVAL;
    return -1;
}
EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) {
    return sendfile(out, in, (off_t *)offset, size);
}
EXPORT ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    REAL(copy_file_range);
    char path[PATH_MAX];
    if (!is_watched(out, path)) return real(in, from, out, to, size, flags);
    errno = EXDEV;
    return -1;
}

/* Calls of an open file. */

#define OF_HANDLE(name, call, error, offset, parameters, arguments) \
    EXPORT int name parameters { \
        REAL(name); \
        char path[PATH_MAX]; \
        if (!is_watched(handle, path)) return real arguments; \
        if (enter(error, 0) == REFUSED) return -1; \
        int done = real arguments; \
        noted(done ? "failed" : call, offset, path, "", NULL, 0); \
        give(); \
        return done; \
    }
OF_HANDLE(fsync, "sync", EIO, 0, (int handle), (handle))
OF_HANDLE(fdatasync, "sync", EIO, 0, (int handle), (handle))
OF_HANDLE(ftruncate, "size", EIO, size, (int handle, off_t size), (handle, size))
OF_HANDLE(ftruncate64, "size", EIO, size, (int handle, off64_t size), (handle, size))
OF_HANDLE(fchmod, "mode", EIO, 0, (int handle, mode_t mode), (handle, mode))

/* Calls of a name, or of two. */

#define OF_PATH(name, call, error, folder, parameters, arguments) \
    EXPORT int name parameters { \
        REAL(name); \
        char full[PATH_MAX]; \
        if (!of_path(folder, path, full)) return real arguments; \
        if (enter(error, 0) == REFUSED) return -1; \
        int done = real arguments; \
        noted(done ? "failed" : call, 0, full, "", NULL, 0); \
        give(); \
        return done; \
    }
OF_PATH(mkdir, "mkdir", ENOSPC, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
OF_PATH(mkdirat, "mkdir", ENOSPC, folder, (int folder, const char *path, mode_t mode), (folder, path, mode))
OF_PATH(rmdir, "remove", EIO, AT_FDCWD, (const char *path), (path))
OF_PATH(unlink, "remove", EIO, AT_FDCWD, (const char *path), (path))
OF_PATH(unlinkat, "remove", EIO, folder, (int folder, const char *path, int flags), (folder, path, flags))
OF_PATH(truncate, "unknown", EIO, AT_FDCWD, (const char *path, off_t size), (path, size))
OF_PATH(chmod, "mode", EIO, AT_FDCWD, (const char *path, mode_t mode), (path, mode))
OF_PATH(fchmodat, "mode", EIO, folder, (int folder, const char *path, mode_t mode, int flags),
        (folder, path, mode, flags))
OF_PATH(symlink, "unknown", ENOSPC, AT_FDCWD, (const char *target, const char *path), (target, path))
OF_PATH(symlinkat, "unknown", ENOSPC, folder, (const char *target, int folder, const char *path),
        (target, folder, path))

#define OF_PATHS(name, call, error, one_folder, other_folder, parameters, arguments) \
    EXPORT int name parameters { \
        REAL(name); \
        char full[PATH_MAX], second[PATH_MAX]; \
        int first = of_path(one_folder, one, full); \
        if (!of_path(other_folder, other, second) && !first) return real arguments; \
        if (enter(error, 0) == REFUSED) return -1; \
        int done = real arguments; \
        noted(done ? "failed" : call, 0, full, second, NULL, 0); \
        give(); \
        return done; \
    }
OF_PATHS(rename, "rename", EIO, AT_FDCWD, AT_FDCWD, (const char *one, const char *other), (one, other))
OF_PATHS(renameat, "rename", EIO, here, there, (int here, const char *one, int there, const char *other),
         (here, one, there, other))
OF_PATHS(renameat2, flags == RENAME_SWAP ? "exchange" : "rename", EIO, here, there,
         (int here, const char *one, int there, const char *other, unsigned flags),
         (here, one, there, other, flags))
OF_PATHS(link, "link", EIO, AT_FDCWD, AT_FDCWD, (const char *one, const char *other), (one, other))
OF_PATHS(linkat, "link", EIO, here, there,
         (int here, const char *one, int there, const char *other, int flags),
         (here, one, there, other, flags))
