/// The versions of the protocol that matter to an answer.
package enum HTTPVersion: Sendable, Equatable {
  /// HTTP/1.0, or older: no chunks, no connection kept unless asked for.
  case http10
  /// HTTP/1.1, or a later 1.x.
  case http11

  init(_ text: UnsafePointer<CChar>?) {
    // "HTTP/1.x": what tells is the last character.
    guard let text, text[0] != 0, String(cString: text) != "HTTP/1.0" else {
      self = .http10
      return
    }
    self = .http11
  }
}
