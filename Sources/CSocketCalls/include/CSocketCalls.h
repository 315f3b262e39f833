#ifndef KEYWAY_SOCKET_CALLS_H
#define KEYWAY_SOCKET_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Two calls of the C library that libmicrohttpd reaches its sockets with, defined once more: recv and accept4. The
// program's own definition comes before that of a shared library, for all of the process (ELF symbol interposition, as
// with an allocator that replaces malloc). libmicrohttpd 0.9.75 has no hook at either place, and both are needed:
//
// - It parses what it reads at once, takes shapes that RFC 9112 forbids, and answers others itself, twice or never.
//   With `recv` in our hands, bytes are judged before it has them.
// - A thread of it that has no connection runs in circles when accept fails for lack of descriptors.
//
// Descriptors that were not named here, and calls with flags, go to the kernel as ever.

// Reads from a descriptor for libmicrohttpd: what recv(2) gives, with errno. `context` is that of the descriptor.
typedef ssize_t (*keyway_receiver)(void *context, int descriptor, void *buffer, size_t size);

// From now on, recv on this descriptor calls `receiver`; a null `context` ends that. False if the number of the
// descriptor is beyond what can be kept. The same thread names a descriptor, reads from it, and closes it.
bool keyway_receive_through(int descriptor, void *context, keyway_receiver receiver);

// What recv(2) does, for receivers.
ssize_t keyway_receive(int descriptor, void *buffer, size_t size);

// Keeps a descriptor for the moment when none is left: accept4 then gives it up to accept the connection that waits,
// closes that, and takes the descriptor back. Without it, accept4 fails for as long as none is left.
void keyway_keep_spare_descriptor(void);

// How many connections accept4 closed because no descriptor was left.
size_t keyway_connections_without_descriptor(void);

// Whether recv and accept4 of the process are those here: a program that was linked otherwise must not serve.
bool keyway_calls_are_ours(void);
#endif
