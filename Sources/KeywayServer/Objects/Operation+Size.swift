import KeyValueModel

extension Operation {
  /// How many things it does: itself, and the objects that it makes in place.
  var size: Int {
    switch self {
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      1 + members.count { if case .object = $0 { true } else { false } }
    // A part of the operation before it.
    case .lifetime: 0
    default: 1
    }
  }
}
