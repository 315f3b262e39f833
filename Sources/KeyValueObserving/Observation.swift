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
  /// Who observes, where not everything may be read that the value is read through.
  package var viewer: Viewer?

  /// An observation of a path that was resolved for the object's entity.
  public init(object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String? = nil) {
    self.object = object
    self.keyPath = keyPath
    self.options = options
    self.context = context
  }

  /// The observed value as `reader` has it.
  public func value(in reader: some ObjectReader) -> Value {
    guard let viewer else { return reader.value(of: object, at: keyPath) }
    return GuardedReader(reader, for: viewer).value(of: object, at: keyPath)
  }

  /// What the value is read from.
  var reads: KeyTree { viewer == nil ? keyPath.reads : keyPath.reads.guarded }

  /// What the observer is told first: the whole value, as a setting.
  public func initialChange(cell: String?, in reader: some ObjectReader) -> Change {
    Change(of: self, cell: cell, old: nil, new: value(in: reader))
  }
}
