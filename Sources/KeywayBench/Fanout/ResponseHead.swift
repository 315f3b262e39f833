/// The head of a response of HTTP/1.1, as far as a load generator needs it.
struct ResponseHead: Hashable, Sendable {
  /// The status code.
  var status: Int
  /// Whether the body has the chunked coding.
  var isChunked = false
  /// The length of the body where the head tells it.
  var contentLength: Int?

  /// A head without its last empty line; nil for what is none.
  init?(_ bytes: some Sequence<UInt8>) {
    let lines = String(decoding: Array(bytes), as: UTF8.self).split { $0.isNewline }
    guard let words = lines.first?.split(separator: " "), words.count >= 2, words[0].hasPrefix("HTTP/1."),
      let status = Int(words[1])
    else { return nil }
    self.status = status
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      let value = parts[1].drop { $0 == " " }
      switch parts[0].lowercased() {
      case "transfer-encoding": isChunked = value.lowercased().hasSuffix("chunked")
      case "content-length": contentLength = Int(value)
      default: break
      }
    }
  }
}
