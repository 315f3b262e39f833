// A clock that is wrong: preloaded into a program, it adds CLOCK_OFFSET_SECONDS to the time of day, and leaves the
// clocks that only measure alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t offset(void) {
  const char *text = getenv("CLOCK_OFFSET_SECONDS");
  return text ? (time_t)strtoll(text, 0, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *value) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(clock, value);
  if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) value->tv_sec += offset();
  return status;
}

int gettimeofday(struct timeval *value, void *zone) {
  int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
  int status = real(value, zone);
  if (!status) value->tv_sec += offset();
  return status;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
