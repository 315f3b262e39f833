#ifndef CEMBEDDEDFILES_H
#define CEMBEDDEDFILES_H
#include <stddef.h>

/// A file of the package, embedded in the program's read-only data.
struct keyway_embedded_file {
  /// The path below the folder that it comes from: "console/main.js".
  const char *_Nonnull name;
  const unsigned char *_Nonnull bytes;
  size_t count;
};

/// Returns the files for browsers, from Sources/KeywayBrowser/Resources; stores their number in `count`.
const struct keyway_embedded_file *_Nonnull keyway_browser_files(size_t *_Nonnull count);

/// Returns the schema of the example, from Config/example.
struct keyway_embedded_file keyway_example_schema(void);

/// Returns the initial objects of the example's store, from Config/example.
struct keyway_embedded_file keyway_example_objects(void);

/// Returns the description of the API, from Sources/KeywayServer/Description.
struct keyway_embedded_file keyway_openapi_document(void);
#endif
