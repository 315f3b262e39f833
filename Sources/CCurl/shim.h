#ifndef KEYWAY_CURL_SHIM_H
#define KEYWAY_CURL_SHIM_H
// libcurl, the HTTP client that Foundation links too: Debian's libcurl4-openssl-dev.
#include <curl/curl.h>
#include <stdbool.h>

/// The parameters of a transfer. One struct instead of curl's options: Swift cannot call variadic functions, and the
/// compiler checks the type of each member. Strings and the body are copied, lists and buffers are not.
struct keyway_transfer {
  const char *url;
  /// The request target, sent unchanged; curl would normalize the path of the URL.
  const char *target;
  const char *method;
  /// The header fields, one string for each.
  struct curl_slist *fields;
  /// The host and port to connect to instead of those of the URL, in the form of CURLOPT_CONNECT_TO; NULL for those of
  /// the URL.
  struct curl_slist *connect_to;
  /// The body; ignored unless `has_body`.
  const void *body;
  curl_off_t body_bytes;
  bool has_body;
  /// True for a HEAD request, which has no body.
  bool is_head;
  /// The file of the certificates to trust instead of the system's; NULL for the system's.
  const char *ca_file;
  /// The time limit for a connection to be established.
  long connect_milliseconds;
  /// The time for which an idle connection is reused.
  long idle_seconds;
  /// A buffer for the error message, of at least CURL_ERROR_SIZE bytes.
  char *error;
  /// The context that is passed to the callbacks.
  void *context;
  /// Called once the connection is established, right before the request is sent.
  curl_prereq_callback begun;
  /// Called with each line of the response's head.
  curl_write_callback head_line;
  /// Called with each piece of the response's body.
  curl_write_callback content;
};

/// Sets the options of a handle for a transfer. Returns the error of the first option that curl refuses.
static inline CURLcode keyway_prepare_transfer(CURL *handle, const struct keyway_transfer *transfer) {
  CURLcode code;
#define KEYWAY_SET(option, value) \
  if ((code = curl_easy_setopt(handle, option, value)) != CURLE_OK) return code
  KEYWAY_SET(CURLOPT_ERRORBUFFER, transfer->error);
  // Time name lookups out without signals, which belong to the whole process.
  KEYWAY_SET(CURLOPT_NOSIGNAL, 1L);
  KEYWAY_SET(CURLOPT_PROTOCOLS_STR, "http,https");
  KEYWAY_SET(CURLOPT_URL, transfer->url);
  KEYWAY_SET(CURLOPT_REQUEST_TARGET, transfer->target);
  KEYWAY_SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  KEYWAY_SET(CURLOPT_FOLLOWLOCATION, 0L);
  // The environment names proxies for programs in general; requests here connect directly.
  KEYWAY_SET(CURLOPT_PROXY, "");
  KEYWAY_SET(CURLOPT_HTTPHEADER, transfer->fields);
  if (transfer->connect_to != NULL) KEYWAY_SET(CURLOPT_CONNECT_TO, transfer->connect_to);
  if (transfer->is_head) {
    KEYWAY_SET(CURLOPT_NOBODY, 1L);
  } else if (transfer->has_body) {
    KEYWAY_SET(CURLOPT_POSTFIELDSIZE_LARGE, transfer->body_bytes);
    KEYWAY_SET(CURLOPT_COPYPOSTFIELDS, transfer->body);
  }
  KEYWAY_SET(CURLOPT_CUSTOMREQUEST, transfer->method);
  KEYWAY_SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  KEYWAY_SET(CURLOPT_SSL_VERIFYPEER, 1L);
  KEYWAY_SET(CURLOPT_SSL_VERIFYHOST, 2L);
  if (transfer->ca_file != NULL) {
    KEYWAY_SET(CURLOPT_CAINFO, transfer->ca_file);
    // Otherwise curl would also trust the system's folder of certificates.
    KEYWAY_SET(CURLOPT_CAPATH, NULL);
  }
  // A replaced file takes effect after a minute, and not after a day.
  KEYWAY_SET(CURLOPT_CA_CACHE_TIMEOUT, 60L);
  KEYWAY_SET(CURLOPT_CONNECTTIMEOUT_MS, transfer->connect_milliseconds);
  KEYWAY_SET(CURLOPT_MAXAGE_CONN, transfer->idle_seconds);
  // Lets the kernel detect that the other machine is gone while nothing is sent.
  KEYWAY_SET(CURLOPT_TCP_KEEPALIVE, 1L);
  KEYWAY_SET(CURLOPT_TCP_KEEPIDLE, 10L);
  KEYWAY_SET(CURLOPT_TCP_KEEPINTVL, 5L);
  KEYWAY_SET(CURLOPT_PREREQFUNCTION, transfer->begun);
  KEYWAY_SET(CURLOPT_PREREQDATA, transfer->context);
  KEYWAY_SET(CURLOPT_HEADERFUNCTION, transfer->head_line);
  KEYWAY_SET(CURLOPT_HEADERDATA, transfer->context);
  KEYWAY_SET(CURLOPT_WRITEFUNCTION, transfer->content);
  KEYWAY_SET(CURLOPT_WRITEDATA, transfer->context);
#undef KEYWAY_SET
  return CURLE_OK;
}

/// Limits the number of idle connections that are kept. A wrapper, because curl_multi_setopt is variadic.
static inline CURLMcode keyway_keep_connections(CURLM *multi, long count) {
  return curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, count);
}

/// Returns the status of the last response whose head was received. A wrapper, because curl_easy_getinfo is variadic.
static inline long keyway_response_status(CURL *handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
#endif
