/// A request that is sent again and again, each time with another number in it: what is written differs, and is always
/// as long.
struct NumberedRequest: Hashable, Sendable {
  /// The digits of the number.
  static let digitCount = 12

  /// The request as it is sent next.
  private(set) var bytes: [UInt8]
  private let place: Int?

  /// A request whose first run of `digitCount` question marks is where the number goes; without one it never changes.
  init(_ text: String) {
    bytes = Array(text.utf8)
    let mark = [UInt8](repeating: UInt8(ascii: "?"), count: Self.digitCount)
    let starts = 0..<max(0, bytes.count - mark.count + 1)
    place = starts.first { [bytes] in bytes[$0..<$0 + mark.count].elementsEqual(mark) }
    set(0)
  }

  /// Puts the last digits of `number` into its place.
  mutating func set(_ number: UInt64) {
    guard let place else { return }
    var rest = number
    for offset in stride(from: place + Self.digitCount - 1, through: place, by: -1) {
      bytes[offset] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
  }
}
