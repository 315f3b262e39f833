import KeyValueModel

/// An answer of the server under test, as far as the test looks at it.
struct CrashAnswer: Sendable {
  /// The status code.
  var status = 0
  /// The cursor of the commit, or of the state that was read.
  var cursor: CrashCursor?
  /// Where the created object is.
  var location: String?
  /// The length of the body.
  var contentLength = 0
  /// The body.
  var body: [UInt8] = []

  /// Whether the request was done.
  var isSuccess: Bool { (200..<300).contains(status) }

  /// The body as JSON; null where it is none.
  var json: Value { (try? Value(json: body)) ?? .null }

  /// The body as text, cut where it is long.
  var text: String { String(decoding: body.prefix(400), as: UTF8.self) }

  /// An answer without its body; nil for what is no head of one.
  init?(head: ArraySlice<UInt8>) {
    let lines = String(decoding: head, as: UTF8.self).split { $0.isNewline }
    guard let words = lines.first?.split(separator: " "), words.count >= 2, words[0].hasPrefix("HTTP/1."),
      let status = Int(words[1])
    else { return nil }
    self.status = status
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      let value = String(parts[1].drop { $0 == " " })
      switch parts[0].lowercased() {
      case "keyway-cursor": cursor = CrashCursor(value)
      case "location": location = value
      case "content-length": contentLength = Int(value) ?? 0
      default: break
      }
    }
  }
}
