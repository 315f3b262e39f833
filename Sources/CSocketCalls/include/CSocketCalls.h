#ifndef KEYWAY_SOCKET_CALLS_H
#define KEYWAY_SOCKET_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// A call of the C library that libmicrohttpd reads its sockets with, defined once more: recv. The program's own
// definition comes before that of a shared library, for all of the process (ELF symbol interposition, as with an
// allocator that replaces malloc). libmicrohttpd 0.9.75 has no hook at this place: it parses what it reads at once,
// takes shapes that RFC 9112 forbids, and answers others itself, twice or never. With `recv` in our hands, bytes are
// judged before it has them.
//
// Descriptors that were not named here, and calls with flags, go to the kernel as ever.

// Reads from a descriptor for libmicrohttpd: what recv(2) gives, with errno. `context` is that of the descriptor.
typedef ssize_t (*keyway_receiver)(void *context, int descriptor, void *buffer, size_t size);

// From now on, recv on this descriptor calls `receiver`; a null `context` ends that. False if the number of the
// descriptor is beyond what can be kept. The same thread names a descriptor, reads from it, and closes it.
bool keyway_receive_through(int descriptor, void *context, keyway_receiver receiver);

// What recv(2) does, for receivers.
ssize_t keyway_receive(int descriptor, void *buffer, size_t size);

// Accepts a connection of a listening socket, without waiting for one, and has its descriptor not block, and not go to
// programs that are started. As accept4(2), which the C library declares for GNU sources alone.
int keyway_accept(int listener, void *address, unsigned *length);

// Whether recv of the process is the one here: a program that was linked otherwise must not serve.
bool keyway_calls_are_ours(void);
#endif
