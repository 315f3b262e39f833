#ifndef KEYWAY_SHIM_H
#define KEYWAY_SHIM_H
#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>

/// The parameters of a daemon. One struct instead of MHD's option list: Swift cannot call variadic functions, and the
/// compiler checks named members, but not an option list.
struct keyway_daemon {
  /// The maximum number of connections.
  unsigned int connections;
  /// The time after which an idle connection is closed.
  unsigned int idle_seconds;
  /// The bytes of memory for each connection.
  size_t connection_memory;
  /// The first argument of the callbacks.
  void *context;
  MHD_NotifyConnectionCallback connection_changed;
  /// Called with the target of a request before its header fields are read. Returns the context of the request.
  void *(*request_begun)(void *context, const char *target, struct MHD_Connection *connection);
  MHD_AccessHandlerCallback request;
  MHD_RequestCompletedCallback request_completed;
};

/// Leaves the escapes in targets as they were sent, since the router interprets them. Returns the length of the text.
static inline size_t keyway_keep_escaped(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

/// Starts a daemon with one thread and without a listening socket: connections are added. Returns NULL if it cannot be
/// started. A wrapper, because MHD_start_daemon is variadic.
///
/// MHD_USE_TURBO is required: with it MHD closes a connection without shutdown(2), so that a duplicate of its
/// descriptor continues as an event stream's socket.
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

/// Adds several fields to a response as one: the value of the first, followed by the lines of the others, with two
/// marks for each line break. Returns false if MHD has no memory for that.
///
/// MHD accepts no value with line breaks, so they are written into its own copy, which it returns as constant, never
/// changes, and sends unchanged.
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

/// Returns the socket of a connection. A wrapper, because MHD_get_connection_info is variadic, and returns a union
/// whose member depends on the query.
static inline MHD_socket keyway_connection_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? MHD_INVALID_SOCKET : info->connect_fd;
}

/// Returns the context of a connection, or NULL. A wrapper for the same reason.
static inline void *keyway_connection_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == NULL ? NULL : info->socket_context;
}

/// Returns the daemon of a connection, or NULL. A wrapper for the same reason.
static inline struct MHD_Daemon *keyway_connection_daemon(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_DAEMON);
  return info == NULL ? NULL : info->daemon;
}
#endif
