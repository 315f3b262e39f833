package import KeyValueModel

/// The values of observations in one state, each evaluated once for all observations with the same object, key path and
/// viewer, within a limit of steps.
///
/// The values are evaluated on a snapshot while others write, and brought up to date under the publication's lock,
/// which only examines the commits since the snapshot.
package struct ObservedValues: Sendable {
  /// The objects that an evaluation reads.
  private final class Log {
    var objects: Set<Reference> = []
  }

  /// A reader that records which objects are read.
  private struct LoggingReader<Base: ObjectReader>: ObjectReader {
    let state: Base
    let meter: ReadingWork
    let log: Log

    var work: ReadingWork? { meter }

    func record(_ reference: Reference) -> ObjectRecord? {
      guard meter.spend() else { return nil }
      log.objects.insert(reference)
      return state.record(reference)
    }
  }

  /// The number of steps that may be taken while writers wait: about a millisecond.
  package static let stepsUnderLock = 20_000

  private let limit: Int
  /// The revision of the evaluated state; nil before the first evaluation.
  package private(set) var revision: Revision?
  private var known: [ValueKey: Value] = [:]
  /// The values that read one object for each key of their path and nothing else. Reading them again is cheaper than
  /// tracking them.
  private var cheap: [ValueKey] = []
  /// The objects that all other values were read from.
  private var objects: Set<Reference> = []
  /// The number of evaluations. For tests.
  package private(set) var evaluationCount = 0

  /// Creates a container without values. Each call of `evaluate` takes at most `limit` steps.
  package init(steps limit: Int) { self.limit = limit }

  /// Evaluates observations in the state of a revision, except for values that are known already and for values that
  /// are as quickly read as remembered: those of stored keys of the observed objects themselves. Throws
  /// `too-many-steps`; then the values must not be used.
  package mutating func evaluate(
    _ observations: some Sequence<Observation>, in state: some ObjectReader, at revision: Revision
  ) throws(ModelError) {
    if revision != self.revision { (known, cheap, objects) = ([:], [], []) }
    self.revision = revision
    let meter = ReadingWork(steps: limit)
    for observation in observations where !observation.isPlain(in: state) {
      try evaluate(observation, in: state, meter)
    }
  }

  private mutating func evaluate(
    _ observation: Observation, in state: some ObjectReader, _ meter: ReadingWork
  ) throws(ModelError) {
    let key = ValueKey(observation)
    guard known[key] == nil else { return }
    // Results remembered during a guarded reading are valid for one viewer only.
    if observation.viewer != nil { meter.forget() }
    defer { if observation.viewer != nil { meter.forget() } }
    let before = meter.spentSteps
    let log = Log()
    evaluationCount += 1
    let value = observation.value(in: LoggingReader(state: state, meter: meter, log: log))
    meter.spend()
    try meter.check()
    known[key] = value
    let path = observation.keyPath
    if path.operation == nil, observation.viewer == nil, meter.spentSteps - before <= path.keys.count + 1 {
      cheap.append(key)
    } else {
      objects.formUnion(log.objects)
    }
  }

  /// The total number of bytes of text in all values.
  package var textBytes: Int { known.values.reduce(0) { $0 + $1.leastTextBytes } }

  /// Moves the values on to the revision `present`, and returns true, if none of `commits`, which are those since the
  /// revision of the values, touched an object that costly values were read from. Cheap values are dropped and read
  /// again on demand. Returns false before the first evaluation, and if costly values exist and `commits` is nil.
  package mutating func bringUp(through commits: [Commit]?, to present: Revision) -> Bool {
    guard revision != nil else { return false }
    if !objects.isEmpty {
      guard let commits else { return false }
      for commit in commits where commit.touchesObject(where: objects.contains) { return false }
    }
    if revision == present { return true }
    for key in cheap { known[key] = nil }
    cheap = []
    revision = present
    return true
  }

  /// Returns a reader of a state that knows these values.
  package func reader(of state: any ObjectReader) -> Reader { Reader(state: state, known: known) }

  /// A reader of a state that does not need to evaluate known values.
  package struct Reader: ObjectReader {
    fileprivate let state: any ObjectReader
    fileprivate let known: [ValueKey: Value]

    /// Returns the object of this name; nil if there is none.
    package func record(_ reference: Reference) -> ObjectRecord? { state.record(reference) }
  }
}

extension Observation {
  /// Returns the observed value in the state of `reader`, without evaluating it if the reader knows it already.
  func knownValue(in reader: some ObjectReader) -> Value {
    (reader as? ObservedValues.Reader)?.known[ValueKey(self)] ?? value(in: reader)
  }

  /// True if the value is that of a stored key of the object itself.
  package func isPlain(in reader: some ObjectReader) -> Bool {
    guard viewer == nil, keyPath.operation == nil, keyPath.keys.count == 1 else { return false }
    return reader.record(object).map { $0.entity.keys[keyPath.keys[0]].storage != nil } ?? true
  }

  /// The same observation without options: its notifications only say that something changed, and need no values.
  package var withoutValues: Observation {
    Observation(object: object, keyPath: keyPath, options: [], context: context, viewer: viewer)
  }
}
