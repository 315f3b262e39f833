/// How long an object is to last, as a write says it (the specification, section 3, "Objects that end by themselves").
public enum Lifetime: Hashable, Sendable {
  /// So many seconds from the write on, 1 to `maximumSeconds`.
  case seconds(Int64)
  /// As long as the stream of this number.
  case stream(UInt64)
  /// Until it is deleted.
  case unlimited

  /// The longest lease, in seconds: 365 days.
  public static var maximumSeconds: Int64 { 31_536_000 }
}
