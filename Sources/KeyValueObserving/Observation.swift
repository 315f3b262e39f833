public import KeyValueModel

/// One (object, key path, options, context) that an observer is notified of.
public struct Observation: Hashable, Sendable {
  /// What it consists of, in one object: an observation is copied with every change, and each copy counts one
  /// reference.
  ///
  /// `@unchecked Sendable`, because it has a subclass, `ObserverIndex.Registration`. In both, everything is constant.
  class Parts: @unchecked Sendable {
    let object: Reference
    let keyPath: ModelKeyPath
    let options: ObservingOptions
    let context: String?
    let viewer: Viewer?

    init(
      _ object: Reference, _ keyPath: ModelKeyPath, _ options: ObservingOptions, _ context: String?, _ viewer: Viewer?
    ) {
      (self.object, self.keyPath, self.options, self.context, self.viewer) = (object, keyPath, options, context, viewer)
    }
  }

  private let parts: Parts

  /// The observation that consists of these.
  init(_ parts: Parts) {
    self.parts = parts
  }

  /// An observation of a path that was resolved for the object's entity.
  public init(object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String? = nil) {
    self.init(object: object, keyPath: keyPath, options: options, context: context, viewer: nil)
  }

  /// The same by `viewer`, if not everything may be read that the value is read through.
  package init(
    object: Reference, keyPath: ModelKeyPath, options: ObservingOptions, context: String?, viewer: Viewer?
  ) {
    parts = Parts(object, keyPath, options, context, viewer)
  }

  /// The object that was named.
  public var object: Reference { parts.object }
  /// The path from it.
  public var keyPath: ModelKeyPath { parts.keyPath }
  /// What is told.
  public var options: ObservingOptions { parts.options }
  /// Given back with every change, unread.
  public var context: String? { parts.context }
  /// Who observes, where not everything may be read that the value is read through.
  package var viewer: Viewer? { parts.viewer }

  /// Equal when everything about them is.
  public static func == (left: Observation, right: Observation) -> Bool {
    left.parts === right.parts
      || left.object == right.object && left.keyPath == right.keyPath && left.options == right.options
        && left.context == right.context && left.viewer == right.viewer
  }

  /// Feeds what equality looks at.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(object)
    hasher.combine(keyPath)
    hasher.combine(options)
    hasher.combine(context)
    hasher.combine(viewer)
  }

  /// The observed value as `reader` has it.
  public func value(in reader: some ObjectReader) -> Value {
    guard let viewer else { return reader.value(of: object, at: keyPath) }
    return GuardedReader(reader, for: viewer).value(of: object, at: keyPath)
  }

  /// What a collection of the object itself folds into, where that is what is observed; nil for any other path.
  var ownFold: CollectionFold? {
    guard viewer == nil, keyPath.keys.count == 1, let operation = keyPath.operation else { return nil }
    return CollectionFold(operation, ofKey: keyPath.keys[0])
  }

  /// What the value is read from.
  var reads: KeyTree { viewer == nil ? keyPath.reads : keyPath.reads.guarded }

  /// What the observer is told first: the whole value, as a setting.
  public func initialChange(cell: String?, in reader: some ObjectReader) -> Change {
    Change(of: self, cell: cell, old: nil, new: knownValue(in: reader))
  }
}
