#include "CEmbeddedFiles.h"

// #embed is C23; this compiler accepts it in every C version, and would warn about each file.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char keyway_js[] = {
#embed "../KeywayBrowser/Resources/keyway.js"
};
static const unsigned char keyway_d_ts[] = {
#embed "../KeywayBrowser/Resources/keyway.d.ts"
};
static const unsigned char console_console_css[] = {
#embed "../KeywayBrowser/Resources/console/console.css"
};
static const unsigned char console_create_js[] = {
#embed "../KeywayBrowser/Resources/console/create.js"
};
static const unsigned char console_editor_js[] = {
#embed "../KeywayBrowser/Resources/console/editor.js"
};
static const unsigned char console_elements_js[] = {
#embed "../KeywayBrowser/Resources/console/elements.js"
};
static const unsigned char console_entity_js[] = {
#embed "../KeywayBrowser/Resources/console/entity.js"
};
static const unsigned char console_grid_js[] = {
#embed "../KeywayBrowser/Resources/console/grid.js"
};
static const unsigned char console_icon_svg[] = {
#embed "../KeywayBrowser/Resources/console/icon.svg"
};
static const unsigned char console_index_html[] = {
#embed "../KeywayBrowser/Resources/console/index.html"
};
static const unsigned char console_journal_js[] = {
#embed "../KeywayBrowser/Resources/console/journal.js"
};
static const unsigned char console_main_js[] = {
#embed "../KeywayBrowser/Resources/console/main.js"
};
static const unsigned char console_members_js[] = {
#embed "../KeywayBrowser/Resources/console/members.js"
};
static const unsigned char console_message_js[] = {
#embed "../KeywayBrowser/Resources/console/message.js"
};
static const unsigned char console_object_js[] = {
#embed "../KeywayBrowser/Resources/console/object.js"
};
static const unsigned char console_problem_js[] = {
#embed "../KeywayBrowser/Resources/console/problem.js"
};
static const unsigned char console_schema_js[] = {
#embed "../KeywayBrowser/Resources/console/schema.js"
};
static const unsigned char console_session_js[] = {
#embed "../KeywayBrowser/Resources/console/session.js"
};
static const unsigned char console_sidebar_js[] = {
#embed "../KeywayBrowser/Resources/console/sidebar.js"
};
static const unsigned char console_sparkline_js[] = {
#embed "../KeywayBrowser/Resources/console/sparkline.js"
};
static const unsigned char console_sse_js[] = {
#embed "../KeywayBrowser/Resources/console/sse.js"
};
static const unsigned char console_status_js[] = {
#embed "../KeywayBrowser/Resources/console/status.js"
};
static const unsigned char console_stream_js[] = {
#embed "../KeywayBrowser/Resources/console/stream.js"
};
static const unsigned char console_values_js[] = {
#embed "../KeywayBrowser/Resources/console/values.js"
};
static const unsigned char console_views_css[] = {
#embed "../KeywayBrowser/Resources/console/views.css"
};
static const unsigned char console_window_js[] = {
#embed "../KeywayBrowser/Resources/console/window.js"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}
static const struct keyway_embedded_file browser_files[] = {
    FILE_OF("keyway.js", keyway_js),
    FILE_OF("keyway.d.ts", keyway_d_ts),
    FILE_OF("console/console.css", console_console_css),
    FILE_OF("console/create.js", console_create_js),
    FILE_OF("console/editor.js", console_editor_js),
    FILE_OF("console/elements.js", console_elements_js),
    FILE_OF("console/entity.js", console_entity_js),
    FILE_OF("console/grid.js", console_grid_js),
    FILE_OF("console/icon.svg", console_icon_svg),
    FILE_OF("console/index.html", console_index_html),
    FILE_OF("console/journal.js", console_journal_js),
    FILE_OF("console/main.js", console_main_js),
    FILE_OF("console/members.js", console_members_js),
    FILE_OF("console/message.js", console_message_js),
    FILE_OF("console/object.js", console_object_js),
    FILE_OF("console/problem.js", console_problem_js),
    FILE_OF("console/schema.js", console_schema_js),
    FILE_OF("console/session.js", console_session_js),
    FILE_OF("console/sidebar.js", console_sidebar_js),
    FILE_OF("console/sparkline.js", console_sparkline_js),
    FILE_OF("console/sse.js", console_sse_js),
    FILE_OF("console/status.js", console_status_js),
    FILE_OF("console/stream.js", console_stream_js),
    FILE_OF("console/values.js", console_values_js),
    FILE_OF("console/views.css", console_views_css),
    FILE_OF("console/window.js", console_window_js),
};

const struct keyway_embedded_file *keyway_browser_files(size_t *count) {
  *count = sizeof browser_files / sizeof *browser_files;
  return browser_files;
}

static const unsigned char example_schema[] = {
#embed "../../Config/example/schema.yaml"
};
static const unsigned char example_objects[] = {
#embed "../../Config/example/objects.jsonl"
};

struct keyway_embedded_file keyway_example_schema(void) {
  return (struct keyway_embedded_file)FILE_OF("schema.yaml", example_schema);
}

struct keyway_embedded_file keyway_example_objects(void) {
  return (struct keyway_embedded_file)FILE_OF("objects.jsonl", example_objects);
}

static const unsigned char openapi_document[] = {
#embed "../KeywayServer/Description/openapi.yaml"
};

struct keyway_embedded_file keyway_openapi_document(void) {
  return (struct keyway_embedded_file)FILE_OF("openapi.yaml", openapi_document);
}
