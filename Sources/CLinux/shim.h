#ifndef KEYWAY_LINUX_SHIM_H
#define KEYWAY_LINUX_SHIM_H
#include <linux/stat.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/// Sets the name of the calling thread; the kernel uses the first 15 bytes. A wrapper, because prctl is variadic.
static inline void keyway_name_thread(const char *name) {
  extern int prctl(int, ...);
  prctl(15 /* PR_SET_NAME, <linux/prctl.h> */, name, 0L, 0L, 0L);
}

/// O_PATH, which <fcntl.h> hides unless _GNU_SOURCE is defined. The number is the same on all platforms that Swift runs
/// on (asm-generic/fcntl.h).
static const int keyway_open_path_only = 010000000;

/// Identifies the file at a path or, with an empty path, the open file. Returns false if it does not exist.
///
/// Queries nothing else: since Linux 6.13, reading a file's times makes the next write renew them, and the next sync
/// write them to the disk (fdatasync too, where ext4 has no journal). <sys/stat.h> hides statx unless _GNU_SOURCE is
/// defined.
static inline _Bool keyway_identify_file(
  int descriptor, const char *path, unsigned long long *device, unsigned long long *inode) {
  extern int statx(int, const char *, int, unsigned, struct statx *);
  struct statx status;
  if (statx(descriptor, path, 0x1000 /* AT_EMPTY_PATH, <fcntl.h> */, STATX_INO, &status) != 0) return 0;
  *device = (unsigned long long)status.stx_dev_major << 32 | status.stx_dev_minor;
  *inode = status.stx_ino;
  return 1;
}

/// Closes all descriptors from `first` on in the child. `actions` is a `posix_spawn_file_actions_t *`. <spawn.h> hides
/// the function unless _GNU_SOURCE is defined.
static inline int keyway_spawn_close_from(void *actions, int first) {
  extern int posix_spawn_file_actions_addclosefrom_np(void *, int);
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

/// Changes the working directory of the child. `actions` is a `posix_spawn_file_actions_t *`. <spawn.h> hides the
/// function unless _GNU_SOURCE is defined.
static inline int keyway_spawn_change_folder(void *actions, const char *folder) {
  extern int posix_spawn_file_actions_addchdir_np(void *, const char *);
  return posix_spawn_file_actions_addchdir_np(actions, folder);
}
#endif
