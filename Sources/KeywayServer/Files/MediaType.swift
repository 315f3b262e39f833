/// The media types of files, by the ends of their names: what a page is made of, and what it loads.
enum MediaType {
  /// The type of a file that has no known one.
  static let unknown = "application/octet-stream"

  private static let byExtension: [Substring: String] = [
    "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
    "ts": "text/plain; charset=utf-8", "txt": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8", "json": "application/json", "map": "application/json",
    "geojson": "application/geo+json", "jsonl": "application/x-ndjson", "webmanifest": "application/manifest+json",
    "xml": "application/xml", "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp", "avif": "image/avif", "ico": "image/vnd.microsoft.icon",
    "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf", "wasm": "application/wasm",
    "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip", "mp3": "audio/mpeg",
    "ogg": "audio/ogg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm",
  ]

  /// The type of a file of that name, whatever case its extension has.
  static func of(_ name: String) -> String {
    guard let dot = name.lastIndex(of: ".") else { return unknown }
    return byExtension[Substring(name[name.index(after: dot)...].lowercased())] ?? unknown
  }
}
