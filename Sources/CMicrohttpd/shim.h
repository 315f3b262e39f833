#ifndef KEYWAY_SHIM_H
#define KEYWAY_SHIM_H
#include <microhttpd.h>
#include <sys/epoll.h>
#endif
