#ifndef KEYWAY_CURL_SHIM_H
#define KEYWAY_CURL_SHIM_H
// libcurl, the HTTP client that Foundation links too: Debian's libcurl4-openssl-dev.
#include <curl/curl.h>
#include <stdbool.h>

// Everything a transfer is started with. One struct instead of curl's options: Swift cannot call variadic functions,
// and here the compiler checks the type of each value. Strings and the body are copied, lists and buffers are not.
struct keyway_transfer {
  const char *url;
  // As it is sent, whatever curl would make of the path of the URL.
  const char *target;
  const char *method;
  struct curl_slist *fields;
  // Where to connect instead of the URL's host and port, as CURLOPT_CONNECT_TO takes it; NULL for these.
  struct curl_slist *connect_to;
  const void *body;
  curl_off_t body_bytes;
  bool has_body;
  bool is_head;
  // The certificates to trust in the place of the system's; NULL for these.
  const char *ca_file;
  long connect_milliseconds;
  long idle_seconds;
  // At least CURL_ERROR_SIZE bytes.
  char *error;
  void *context;
  curl_prereq_callback begun;
  curl_write_callback head_line;
  curl_write_callback content;
};

static inline CURLcode keyway_prepare_transfer(CURL *handle, const struct keyway_transfer *transfer) {
  CURLcode code;
#define KEYWAY_SET(option, value) \
  if ((code = curl_easy_setopt(handle, option, value)) != CURLE_OK) return code
  KEYWAY_SET(CURLOPT_ERRORBUFFER, transfer->error);
  // Timeouts of name lookups without signals, which belong to the whole process.
  KEYWAY_SET(CURLOPT_NOSIGNAL, 1L);
  KEYWAY_SET(CURLOPT_PROTOCOLS_STR, "http,https");
  KEYWAY_SET(CURLOPT_URL, transfer->url);
  KEYWAY_SET(CURLOPT_REQUEST_TARGET, transfer->target);
  KEYWAY_SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  KEYWAY_SET(CURLOPT_FOLLOWLOCATION, 0L);
  // The environment names proxies for programs in general; a request here goes where it says.
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
    // Else the system's folder would be trusted as well.
    KEYWAY_SET(CURLOPT_CAPATH, NULL);
  }
  // A file that is replaced counts a minute later, and not a day.
  KEYWAY_SET(CURLOPT_CA_CACHE_TIMEOUT, 60L);
  KEYWAY_SET(CURLOPT_CONNECTTIMEOUT_MS, transfer->connect_milliseconds);
  KEYWAY_SET(CURLOPT_MAXAGE_CONN, transfer->idle_seconds);
  // Has the kernel find out that the other machine is gone while nothing is sent.
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

// curl_multi_setopt is variadic: bounds the connections that are kept.
static inline CURLMcode keyway_keep_connections(CURLM *multi, long count) {
  return curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, count);
}

// curl_easy_getinfo is variadic: the status of the last response whose head has come.
static inline long keyway_response_status(CURL *handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
#endif
