// A file system that fails on demand: preloaded into a program, it makes the calls that write to files below one
// directory fail, in a way that the first byte of a control file says and that may change at any time.
//
//   -  nothing fails
//   F  the disk is full: whatever needs room fails with ENOSPC
//   H  the disk is full in the middle of a write: half of it is written, then as F
//   R  the file system is read-only: whatever writes fails with EROFS
//   W  the device fails to write: EIO
//   S  the device fails to sync: EIO, and nobody knows what is on it
//   L  as S, but only for files whose name ends in -wal: a database's log
//   T  half of the next write is written, and the process is killed
//   K  the process is killed instead of the next sync
//
// FAULTS_DIRECTORY is the directory, FAULTS_CONTROL the control file. What is not a file below the directory is left
// alone, and so is everything that only reads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char none = '-';
static volatile const char *control = &none;
static char directory[PATH_MAX];
static size_t length;

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("FAULTS_CONTROL"), *root = getenv("FAULTS_DIRECTORY");
  if (!path || !root || !realpath(root, directory)) return;
  length = strlen(directory);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) control = page;
}

static int is_below(const char *path) {
  return length > 0 && strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == 0);
}

// The path of an open file below the directory; false for every other.
static int find_path(int file, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t count = readlink(link, path, PATH_MAX - 1);
  if (count <= 0) return 0;
  path[count] = 0;
  return is_below(path);
}

static int is_ours(int file) {
  char path[PATH_MAX];
  return find_path(file, path);
}

// The path of a file that need not be there yet: that of its directory is what counts.
static int is_path_ours(int at, const char *path) {
  char folder[PATH_MAX], real[PATH_MAX];
  if (path[0] == '/') {
    snprintf(folder, sizeof folder, "%s", path);
  } else if (at == AT_FDCWD) {
    snprintf(folder, sizeof folder, "./%s", path);
  } else {
    return is_ours(at);
  }
  char *slash = strrchr(folder, '/');
  if (!slash) return 0;
  *(slash == folder ? slash + 1 : slash) = 0;
  return realpath(folder, real) && is_below(real);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// What a call that needs room, or writes at all, fails with; 0 where it does not.
static int refusal(int needs_room) {
  switch (*control) {
    case 'F': case 'H': return needs_room ? ENOSPC : 0;
    case 'R': return EROFS;
    case 'W': return EIO;
    default: return 0;
  }
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define REFUSE(number) do { errno = (number); return -1; } while (0)

// Whether only a half is to be written, and what happens then.
#define WRITING(file, count, half) \
  if (*control != '-' && is_ours(file)) { \
    if (*control == 'T') { size_t part = (count) / 2; (void)!(half); die(); } \
    if (*control == 'H' && (count) > 1) { size_t part = (count) / 2; return (half); } \
    int number = refusal(1); \
    if (number) REFUSE(number); \
  }

ssize_t write(int file, const void *bytes, size_t count) {
  REAL(write);
  WRITING(file, count, real(file, bytes, part));
  return real(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t place) {
  REAL(pwrite);
  WRITING(file, count, real(file, bytes, part, place));
  return real(file, bytes, count, place);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t place) {
  REAL(pwrite64);
  WRITING(file, count, real(file, bytes, part, place));
  return real(file, bytes, count, place);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  REAL(writev);
  if (*control != '-' && is_ours(file)) {
    if (*control == 'T') die();
    int number = refusal(1);
    if (number) REFUSE(number);
  }
  return real(file, parts, count);
}

static int sync_refusal(int file) {
  char path[PATH_MAX];
  if (*control == '-' || !find_path(file, path)) return 0;
  if (*control == 'K') die();
  if (*control == 'L') return strstr(path, "-wal") ? EIO : 0;
  if (*control == 'S' || *control == 'W') return EIO;
  return 0;
}

int fsync(int file) {
  REAL(fsync);
  int number = sync_refusal(file);
  if (number) REFUSE(number);
  return real(file);
}

int fdatasync(int file) {
  REAL(fdatasync);
  int number = sync_refusal(file);
  if (number) REFUSE(number);
  return real(file);
}

// A file becomes longer or shorter: only the one needs room, and nobody says here which it is.
int ftruncate(int file, off_t size) {
  REAL(ftruncate);
  int number = *control != '-' && is_ours(file) ? refusal(0) : 0;
  if (number) REFUSE(number);
  return real(file, size);
}

int ftruncate64(int file, off64_t size) {
  REAL(ftruncate64);
  int number = *control != '-' && is_ours(file) ? refusal(0) : 0;
  if (number) REFUSE(number);
  return real(file, size);
}

int posix_fallocate(int file, off_t place, off_t size) {
  REAL(posix_fallocate);
  int number = *control != '-' && is_ours(file) ? refusal(1) : 0;
  return number ? number : real(file, place, size);
}

int fallocate(int file, int mode, off_t place, off_t size) {
  REAL(fallocate);
  int number = *control != '-' && is_ours(file) ? refusal(1) : 0;
  if (number) REFUSE(number);
  return real(file, mode, place, size);
}

static int opening_refusal(int at, const char *path, int flags) {
  if (*control == '-' || (flags & O_ACCMODE) == O_RDONLY || !is_path_ours(at, path)) return 0;
  // A file that is there needs no room to be opened.
  if (*control == 'F' || *control == 'H') return (flags & O_CREAT) && faccessat(at, path, F_OK, 0) ? ENOSPC : 0;
  return *control == 'R' ? EROFS : 0;
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENING(at, path, flags) \
  va_list arguments; \
  va_start(arguments, flags); \
  mode_t mode = mode_of(flags, arguments); \
  va_end(arguments); \
  int number = opening_refusal(at, path, flags); \
  if (number) REFUSE(number)

int open(const char *path, int flags, ...) {
  REAL(open);
  OPENING(AT_FDCWD, path, flags);
  return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  OPENING(AT_FDCWD, path, flags);
  return real(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
  REAL(openat);
  OPENING(at, path, flags);
  return real(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
  REAL(openat64);
  OPENING(at, path, flags);
  return real(at, path, flags, mode);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  int number = *control != '-' && is_path_ours(AT_FDCWD, to) ? refusal(0) : 0;
  if (number) REFUSE(number);
  return real(from, to);
}

int unlink(const char *path) {
  REAL(unlink);
  int number = *control != '-' && is_path_ours(AT_FDCWD, path) ? refusal(0) : 0;
  if (number) REFUSE(number);
  return real(path);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  int number = *control != '-' && is_path_ours(AT_FDCWD, path) ? refusal(1) : 0;
  if (number) REFUSE(number);
  return real(path, mode);
}
