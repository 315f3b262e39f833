/// What an observer wants to be told (KVO guide, "Options"). Shapes the payload, never whether there is a change.
public struct ObservingOptions: OptionSet, Hashable, Sendable {
  /// One bit per option.
  public let rawValue: UInt8

  /// The options of these bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The value after the change.
  public static let new = ObservingOptions(rawValue: 1)
  /// The value before the change.
  public static let old = ObservingOptions(rawValue: 2)
  /// A first notification with the state at registration.
  public static let initial = ObservingOptions(rawValue: 4)
  /// A notification of its own before each change.
  public static let prior = ObservingOptions(rawValue: 8)

  private static let names: [String: ObservingOptions] = [
    "new": .new, "old": .old, "initial": .initial, "prior": .prior,
  ]

  /// The option of this name (`new`, `old`, `initial`, `prior`), or nil.
  public init?(name: String) {
    guard let option = Self.names[name] else { return nil }
    self = option
  }

  /// The names of the options that are set.
  public var optionNames: [String] {
    ["new", "old", "initial", "prior"].filter { Self.names[$0].map(contains) ?? false }
  }
}
