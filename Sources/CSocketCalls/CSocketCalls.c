// RTLD_DEFAULT
#define _GNU_SOURCE
#include "CSocketCalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Not from <sys/socket.h>: its declarations of what is defined here have other types (a transparent union).
struct sockaddr;
ssize_t recvfrom(int descriptor, void *buffer, size_t size, int flags, struct sockaddr *address, unsigned *length);
ssize_t recv(int descriptor, void *buffer, size_t size, int flags);
int accept4(int listener, struct sockaddr *address, unsigned *length, int flags);

// More than any process has: descriptors have the lowest free numbers. Pages that nobody touched take no memory.
enum { descriptor_count = 1 << 21 };

static _Atomic(void *) contexts[descriptor_count];
static _Atomic(keyway_receiver) the_receiver;
static atomic_int spare = -1;
static atomic_size_t closed_connections;

bool keyway_receive_through(int descriptor, void *context, keyway_receiver receiver) {
  if (descriptor < 0 || descriptor >= descriptor_count) return false;
  atomic_store(&the_receiver, receiver);
  atomic_store_explicit(&contexts[descriptor], context, memory_order_release);
  return true;
}

ssize_t keyway_receive(int descriptor, void *buffer, size_t size) {
  return recvfrom(descriptor, buffer, size, 0, NULL, NULL);
}

ssize_t recv(int descriptor, void *buffer, size_t size, int flags) {
  if (flags == 0 && descriptor >= 0 && descriptor < descriptor_count) {
    void *context = atomic_load_explicit(&contexts[descriptor], memory_order_acquire);
    if (context != NULL) return atomic_load(&the_receiver)(context, descriptor, buffer, size);
  }
  return recvfrom(descriptor, buffer, size, flags, NULL, NULL);
}

void keyway_keep_spare_descriptor(void) {
  if (atomic_load(&spare) >= 0) return;
  int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int none = -1;
  if (descriptor >= 0 && !atomic_compare_exchange_strong(&spare, &none, descriptor)) close(descriptor);
}

size_t keyway_connections_without_descriptor(void) { return atomic_load(&closed_connections); }

// Whether there is a spare descriptor. Another thread may have opened a file at the moment when it was closed to be
// used: then it is made good before any connection is taken, or those that come next could not even be closed.
static bool has_spare(void) {
  if (atomic_load_explicit(&spare, memory_order_relaxed) < 0) keyway_keep_spare_descriptor();
  return atomic_load_explicit(&spare, memory_order_relaxed) >= 0;
}

int accept4(int listener, struct sockaddr *address, unsigned *length, int flags) {
  int descriptor = (int)syscall(SYS_accept4, listener, address, length, flags);
  if (descriptor >= 0) {
    if (has_spare()) return descriptor;
    close(descriptor);
    atomic_fetch_add(&closed_connections, 1);
    keyway_keep_spare_descriptor();
    errno = EAGAIN;
    return -1;
  }
  if (errno != EMFILE && errno != ENFILE) return descriptor;
  int reserve = atomic_exchange(&spare, -1);
  if (reserve >= 0) close(reserve);
  descriptor = (int)syscall(SYS_accept4, listener, NULL, NULL, flags);
  if (descriptor >= 0) {
    close(descriptor);
    atomic_fetch_add(&closed_connections, 1);
  } else if (errno == EMFILE || errno == ENFILE) {
    // Another thread was quicker. The listening socket stays readable, so a caller would be here again at once.
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    nanosleep(&pause, NULL);
  }
  keyway_keep_spare_descriptor();
  // As if there had been no connection: that is true by now, or will be tried again.
  errno = EAGAIN;
  return -1;
}

bool keyway_calls_are_ours(void) {
  return dlsym(RTLD_DEFAULT, "recv") == (void *)&recv && dlsym(RTLD_DEFAULT, "accept4") == (void *)&accept4;
}
