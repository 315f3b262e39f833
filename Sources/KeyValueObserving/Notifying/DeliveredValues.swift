public import KeyValueModel

/// What the observations of one object have delivered at one moment: as much of it as it takes to say later what has
/// changed.
///
/// That is the value where `old` was asked for, and the members where the path ends at a to-many, which are shared and
/// not copied. Of everything else nothing is read.
public struct DeliveredValues: Sendable {
  private var values: [String: Value] = [:]

  /// What `observations`, all of one object, show as `reader` has it. A path that is named twice is kept once.
  public init(_ observations: [Observation], in reader: some ObjectReader) {
    for observation in observations where values[observation.keyPath.text] == nil {
      if observation.options.contains(.old) {
        values[observation.keyPath.text] = observation.knownValue(in: reader)
      } else if let members = observation.followedMembers(in: reader) {
        values[observation.keyPath.text] = .members(members)
      }
    }
  }

  /// Nothing is known.
  public init() {}

  /// How many bytes of text the values have that are kept.
  var textBytes: Int { values.values.reduce(0) { $0 + $1.textBytes } }

  /// The value that an observation showed; nil where it was not kept.
  func value(of observation: Observation) -> Value? { values[observation.keyPath.text] }

  /// The members that an observation showed; nil where they were not kept, or where there was no collection.
  func members(of observation: Observation) -> MemberList? {
    guard case .members(let list) = value(of: observation) else { return nil }
    return list
  }
}
