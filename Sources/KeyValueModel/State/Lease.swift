/// The last lifetime that a write gave an object, which ends it. Objects without a lease have a null pointer.
public final class Lease: Sendable {
  /// The lifetime that the write requested; never `unlimited`.
  public let lifetime: Lifetime
  /// The revision of that write, which distinguishes the lease from earlier and later ones.
  public let revision: Revision
  /// The expiry of the lease, in milliseconds since 1970 by the clock of the commit; 0 if it ends with a stream.
  public let deadline: Int64

  /// Creates a lease from its stored parts.
  package init(_ lifetime: Lifetime, revision: Revision, deadline: Int64) {
    self.lifetime = lifetime
    self.revision = revision
    self.deadline = deadline
  }

  /// Creates the lease of a commit at `milliseconds` since 1970; nil if the lifetime is unlimited.
  convenience init?(_ lifetime: Lifetime, revision: Revision, milliseconds: Int64) {
    switch lifetime {
    case .unlimited: return nil
    case .stream: self.init(lifetime, revision: revision, deadline: 0)
    case .seconds(let seconds): self.init(lifetime, revision: revision, deadline: milliseconds + seconds * 1_000)
    }
  }

  /// The value that clients see: the seconds as requested, or `"stream"`, without the number of the stream.
  package var shown: Value {
    if case .seconds(let seconds) = lifetime { .integer(seconds) } else { .string("stream") }
  }

  /// Appends `,"@lifetime":60` after another member.
  package func appendMember(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"@lifetime\":".utf8)
    shown.appendJSON(to: &bytes)
  }

  // MARK: In snapshots

  /// Appends `,[60,0,12,1700000000000]`: the seconds, the stream (0 for the one that does not apply), the revision, the
  /// deadline.
  func appendStoredText(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",[".utf8)
    if case .seconds(let seconds) = lifetime { bytes.appendDecimal(seconds) } else { bytes.appendDecimal(0) }
    bytes.appendComma()
    if case .stream(let number) = lifetime { bytes.appendDecimal(number) } else { bytes.appendDecimal(0) }
    bytes.appendComma()
    bytes.appendDecimal(revision)
    bytes.appendComma()
    bytes.appendDecimal(max(0, deadline))
    bytes.append(UInt8(ascii: "]"))
  }
}

/// The lifetime of an object as a write requests it (the specification, section 3, "Leases").
public enum Lifetime: Hashable, Sendable {
  /// This many seconds from the write, 1 to `maximumSeconds`.
  case seconds(Int64)
  /// Until the stream with this number ends.
  case stream(UInt64)
  /// Until the object is deleted.
  case unlimited

  /// The longest lease, in seconds: 365 days.
  public static var maximumSeconds: Int64 { 31_536_000 }
}

extension JSONParser where Dialect == StoredJSON {
  /// Parses the lease that `appendStoredText` wrote, after its comma.
  mutating func parseLease() throws(JSONError) -> Lease {
    try expect("[")
    let seconds = try parseUnsigned()
    try expect(",")
    let stream = try parseUnsigned()
    try expect(",")
    let revision = try parseUnsigned()
    try expect(",")
    let deadline = try parseUnsigned()
    try expect("]")
    guard seconds <= UInt64(Lifetime.maximumSeconds), let deadline = Int64(exactly: deadline) else {
      throw error("a lease is too long")
    }
    let lifetime = seconds == 0 ? Lifetime.stream(stream) : .seconds(Int64(seconds))
    return Lease(lifetime, revision: revision, deadline: deadline)
  }

  /// Parses the operand of an operation `lifetime`: `60`, `"stream=12"` or `"none"`.
  mutating func parseLifetime() throws(JSONError) -> Lifetime {
    guard isNext("\"") else {
      let seconds = try parseUnsigned()
      guard (1...UInt64(Lifetime.maximumSeconds)).contains(seconds) else { throw error("a lifetime is too long") }
      return .seconds(Int64(seconds))
    }
    let text = try parseQuoted()
    if text == "none" { return .unlimited }
    guard text.hasPrefix("stream="), let number = UInt64(text.dropFirst(7)) else {
      throw error("'\(text)' is not a lifetime")
    }
    return .stream(number)
  }
}

extension Lifetime {
  /// Appends the operand of an operation: for the journal with the number of the stream, for the feed without.
  func append(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    switch (self, form) {
    case (.seconds(let seconds), _): bytes.appendDecimal(seconds)
    case (.stream(let number), .exact): bytes.appendJSONString("stream=\(number)")
    case (.stream, .plain): bytes.appendJSONString("stream")
    case (.unlimited, _): bytes.appendJSONString("none")
    }
  }
}
