// SHA-256 of GNU Nettle, Debian's nettle-dev, which libmicrohttpd-dev installs by way of GnuTLS.
#include <nettle/sha2.h>
