#ifndef CBROWSERFILES_H
#define CBROWSERFILES_H
#include <stddef.h>

// One of the files for browsers, in the program's own read-only data.
struct keyway_browser_file {
  // Below Sources/KeywayBrowser/Resources: "console/main.js".
  const char *_Nonnull name;
  const unsigned char *_Nonnull bytes;
  size_t count;
};

// All of them; `count` gets how many there are.
const struct keyway_browser_file *_Nonnull keyway_browser_files(size_t *_Nonnull count);
#endif
