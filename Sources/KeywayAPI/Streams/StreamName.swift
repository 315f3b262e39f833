import KeyValueObserving
import Notation

/// The name of a stream in URLs: a number to find it by, and 128 random bits, so that nobody can guess it and change
/// somebody else's cells.
struct StreamName {
  let observer: ObserverID
  let text: String

  init(observer: ObserverID, secret: (UInt64, UInt64)) {
    self.observer = observer
    let digits = secret.0.padded(to: 16, radix: 16) + secret.1.padded(to: 16, radix: 16)
    text = "\(String(observer.rawValue, radix: 36))-\(digits)"
  }

  /// The name that `text` may be; whether it is one is seen by comparing with the stream's.
  init?(_ text: String) {
    guard let dash = text.firstIndex(of: "-"), let number = UInt64(text[..<dash], radix: 36) else { return nil }
    observer = ObserverID(number)
    self.text = text
  }
}
