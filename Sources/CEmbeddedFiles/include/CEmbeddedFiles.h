#ifndef CEMBEDDEDFILES_H
#define CEMBEDDEDFILES_H
#include <stddef.h>

// A file of the package in the program's own read-only data.
struct keyway_embedded_file {
  // Its path below the folder that it is from: "console/main.js".
  const char *_Nonnull name;
  const unsigned char *_Nonnull bytes;
  size_t count;
};

// The files for browsers, from Sources/KeywayBrowser/Resources; `count` gets how many there are.
const struct keyway_embedded_file *_Nonnull keyway_browser_files(size_t *_Nonnull count);

// The schema of the example and the objects that its store begins with, from Config/example.
struct keyway_embedded_file keyway_example_schema(void);
struct keyway_embedded_file keyway_example_objects(void);

// The description of the API, from Sources/KeywayServer/Description.
struct keyway_embedded_file keyway_openapi_document(void);
#endif
