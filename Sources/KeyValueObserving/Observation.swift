public import KeyValueModel

/// One (object, key path, options, context) that an observer is notified of.
public struct Observation: Hashable, Sendable {
  /// The object that was named.
  public let object: Reference
  /// The path from it.
  public let keyPath: ModelKeyPath
  /// What is told.
  public let options: ObservingOptions
  /// Given back with every change, unread.
  public let context: String?

  /// An observation of a path that was resolved for the object's entity.
  public init(object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String? = nil) {
    self.object = object
    self.keyPath = keyPath
    self.options = options
    self.context = context
  }

  /// The observed value as `reader` has it.
  public func value(in reader: some ObjectReader) -> Value {
    reader.value(of: object, at: keyPath)
  }

  /// What the observer is told first: the whole value, as a setting.
  public func initialChange(cell: String?, in reader: some ObjectReader) -> Change {
    Change(of: self, cell: cell, old: nil, new: value(in: reader))
  }
}
