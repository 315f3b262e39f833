#ifndef KEYWAY_SOCKET_CALLS_H
#define KEYWAY_SOCKET_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// A second definition of recv, the call of the C library by which libmicrohttpd reads its sockets. The program's own
// definition takes precedence over that of a shared library, for the whole process (ELF symbol interposition, as with
// an allocator that replaces malloc). libmicrohttpd 0.9.75 has no hook at this place: it parses what it reads at once,
// accepts forms that RFC 9112 forbids, and responds to others itself, twice or never. With our own `recv`, bytes are
// checked before libmicrohttpd receives them.
//
// Calls for descriptors that were not registered here, and calls with flags, go to the kernel as usual.

/// A function that reads from a descriptor for libmicrohttpd, with the result and errno of recv(2). `context` is that
/// of the descriptor.
typedef ssize_t (*keyway_receiver)(void *context, int descriptor, void *buffer, size_t size);

/// Makes recv on this descriptor call `receiver` from now on; a null `context` ends that. Returns false if the number
/// of the descriptor is too large. The same thread registers a descriptor, reads from it, and closes it.
bool keyway_receive_through(int descriptor, void *context, keyway_receiver receiver);

/// Reads from a descriptor like recv(2), for receivers.
ssize_t keyway_receive(int descriptor, void *buffer, size_t size);

/// Accepts a connection of a listening socket, without waiting for one. The descriptor is non-blocking, and is not
/// inherited by programs that are started. Like accept4(2), which the C library declares only for GNU sources.
int keyway_accept(int listener, void *address, unsigned *length);

/// Returns true if the recv of the process is the one defined here. A program that was linked otherwise must not serve.
bool keyway_calls_are_ours(void);
#endif
