/* faults: makes one system call fail in an emitted program. Of the program's object, and of no
 * library, each NAME below is renamed: objcopy --redefine-sym NAME=fault_NAME.
 *
 *   FAULT="NAME N ERRNO"   the N-th call of NAME fails with ERRNO; ERRNO 0: it does half its work
 *   FAULT_HIT=PATH         a file that is made when this happens
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fault_open(const char *path, int flags, ...);
int fault_close(int fd);
int fault_fsync(int fd);
int fault_fchmod(int fd, mode_t mode);
int fault_fstat(int fd, struct stat *info);
int fault_rename(const char *from, const char *to);
int fault_linkat(int from, const char *path, int to, const char *name, int flags);
ssize_t fault_write(int fd, const void *data, size_t bytes);
ssize_t fault_read(int fd, void *data, size_t bytes);
ssize_t fault_pread(int fd, void *data, size_t bytes, off_t offset);
void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int fault_mprotect(void *at, size_t bytes, int protection);

/* 1: this call fails, errno is set; 2: it does half. */
static int due(const char *name) {
    static int asked, left, error;
    static char wanted[32];
    if (!asked++) {
        const char *text = getenv("FAULT");
        left = text != NULL && sscanf(text, "%31s %d %d", wanted, &left, &error) == 3 ? left : 0;
    }
    if (left == 0 || strcmp(name, wanted) != 0 || --left > 0) {
        return 0;
    }
    const char *hit = getenv("FAULT_HIT");
    if (hit != NULL) {
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, hit, O_CREAT | O_WRONLY, 0666));
    }
    errno = error;
    return error != 0 ? 1 : 2;
}

int fault_open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = (mode_t)va_arg(list, unsigned);
    va_end(list);
    return due("open") == 1 ? -1 : open(path, flags, mode);
}
int fault_close(int fd) {
    int fails = due("close") == 1;
    int error = errno, rc = close(fd);
    errno = fails ? error : errno;
    return fails ? -1 : rc;
}
int fault_fsync(int fd) {
    return due("fsync") == 1 ? -1 : fsync(fd);
}
int fault_fchmod(int fd, mode_t mode) {
    return due("fchmod") == 1 ? -1 : fchmod(fd, mode);
}
int fault_fstat(int fd, struct stat *info) {
    return due("fstat") == 1 ? -1 : fstat(fd, info);
}
int fault_rename(const char *from, const char *to) {
    return due("rename") == 1 ? -1 : rename(from, to);
}
int fault_linkat(int from, const char *path, int to, const char *name, int flags) {
    return due("linkat") == 1 ? -1 : linkat(from, path, to, name, flags);
}
ssize_t fault_write(int fd, const void *data, size_t bytes) {
    int fault = due("write");
    return fault == 1 ? -1 : write(fd, data, fault == 2 && bytes > 1 ? bytes / 2 : bytes);
}
ssize_t fault_read(int fd, void *data, size_t bytes) {
    int fault = due("read");
    return fault == 1 ? -1 : read(fd, data, fault == 2 && bytes > 1 ? 1 : bytes);
}
ssize_t fault_pread(int fd, void *data, size_t bytes, off_t offset) {
    int fault = due("pread");
    return fault == 1 ? -1 : pread(fd, data, fault == 2 && bytes > 1 ? 1 : bytes, offset);
}
void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return due("mmap") == 1 ? MAP_FAILED : mmap(at, bytes, protection, flags, fd, offset);
}
int fault_mprotect(void *at, size_t bytes, int protection) {
    return due("mprotect") == 1 ? -1 : mprotect(at, bytes, protection);
}
