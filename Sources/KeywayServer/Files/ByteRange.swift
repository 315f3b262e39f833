/// The part of a file that a `Range` header asks for (RFC 9110 §14).
enum ByteRange: Equatable, Sendable {
  /// The whole file: there is no such header, it does not name one range of bytes, or it is for another version of the
  /// file.
  case all
  /// These bytes.
  case part(Range<Int>)
  /// Bytes that the file does not have.
  case unsatisfiable

  /// Reads a header for a file of `count` bytes. A header that is not understood counts as none, and so do several
  /// ranges, as RFC 9110 §14.2 allows.
  init(_ header: String?, count: Int) {
    self = .all
    guard let header, let equals = header.firstIndex(of: "="),
      header[..<equals].trimmingSpaces().lowercased() == "bytes"
    else { return }
    let specifier = header[header.index(after: equals)...].trimmingSpaces()
    guard let dash = specifier.firstIndex(of: "-") else { return }
    let (first, last) = (specifier[..<dash], specifier[specifier.index(after: dash)...])
    if first.isEmpty {
      guard let length = Self.number(last) else { return }
      self = length == 0 || count == 0 ? .unsatisfiable : .part(max(0, count - length)..<count)
      return
    }
    guard let start = Self.number(first) else { return }
    guard let end = last.isEmpty ? .max : Self.number(last), start <= end else { return }
    self = start < count ? .part(start..<min(end, count - 1) + 1) : .unsatisfiable
  }

  /// Returns the number that digits stand for, or the greatest `Int` if it is larger; nil for anything else.
  private static func number(_ text: some StringProtocol) -> Int? {
    text.isDecimal ? Int(text) ?? .max : nil
  }
}

/// The media types of files by the extensions of their names: the files of pages, and those that pages load.
enum MediaType {
  /// The type of a file without a known extension.
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

  /// Returns the type of a file by the extension of its name, ignoring case.
  static func of(_ name: String) -> String {
    guard let dot = name.lastIndex(of: ".") else { return unknown }
    return byExtension[Substring(name[name.index(after: dot)...].lowercased())] ?? unknown
  }
}
