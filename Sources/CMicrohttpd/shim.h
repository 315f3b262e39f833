#ifndef KEYWAY_SHIM_H
#define KEYWAY_SHIM_H
#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>

// The parameters of a daemon. One struct instead of MHD's option list: Swift cannot call variadic functions, and the
// compiler checks named members, but not an option list.
struct keyway_daemon {
  unsigned int connections;
  unsigned int idle_seconds;
  size_t connection_memory;
  void *context;
  MHD_NotifyConnectionCallback connection_changed;
  void *(*request_begun)(void *context, const char *target, struct MHD_Connection *connection);
  MHD_AccessHandlerCallback request;
  MHD_RequestCompletedCallback request_completed;
};

// Leaves targets as they were sent: the router decides what an escape means.
static inline size_t keyway_keep_escaped(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

// Starts a daemon with one thread and without a listening socket: connections are added. A wrapper, because
// MHD_start_daemon is variadic.
//
// MHD_USE_TURBO is required: with it MHD closes a connection without shutdown(2), so that a duplicate of its descriptor
// continues as an event stream's socket.
static inline struct MHD_Daemon *keyway_start_daemon(const struct keyway_daemon *daemon) {
  return MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO, 0, NULL,
      NULL, daemon->request, daemon->context, MHD_OPTION_CONNECTION_LIMIT, daemon->connections,
      MHD_OPTION_CONNECTION_TIMEOUT, daemon->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      daemon->connection_memory, MHD_OPTION_STRICT_FOR_CLIENT, (int)1, MHD_OPTION_UNESCAPE_CALLBACK,
      &keyway_keep_escaped, (void *)NULL, MHD_OPTION_URI_LOG_CALLBACK, daemon->request_begun, daemon->context,
      MHD_OPTION_NOTIFY_CONNECTION, daemon->connection_changed, daemon->context, MHD_OPTION_NOTIFY_COMPLETED,
      daemon->request_completed, daemon->context, MHD_OPTION_END);
}

// Adds several fields to a response as one: the value of the first, followed by the lines of the others, where two
// marks stand for each line break. MHD accepts no value with line breaks, so they are put into its own copy, which it
// returns as constant and never writes to; it sends the copy as it is. Returns false if MHD has no memory for that.
static inline bool keyway_add_fields(struct MHD_Response *response, const char *name, const char *lines, char mark) {
  if (MHD_add_response_header(response, name, lines) != MHD_YES) return false;
  char *kept = (char *)MHD_get_response_header(response, name);
  if (kept == NULL) return false;
  for (char *end = strchr(kept, mark); end != NULL; end = strchr(end, mark)) {
    *end++ = '\r';
    if (*end == mark) *end++ = '\n';
  }
  return true;
}

// Wrappers, because MHD_get_connection_info is variadic, and returns a union that is read according to the request.
static inline MHD_socket keyway_connection_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? MHD_INVALID_SOCKET : info->connect_fd;
}

static inline void *keyway_connection_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == NULL ? NULL : info->socket_context;
}

static inline struct MHD_Daemon *keyway_connection_daemon(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_DAEMON);
  return info == NULL ? NULL : info->daemon;
}
#endif
