import KeyValueModel

extension Change {
  /// How many bytes of text its values have: a little less than their JSON.
  package var textBytes: Int { (old?.leastTextBytes ?? 0) + (new?.leastTextBytes ?? 0) }
}

extension Value {
  /// How many bytes of text there are in it, everything else counted as one.
  var leastTextBytes: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .array(let elements): elements.reduce(1) { $0 + $1.leastTextBytes }
    case .members(let list): list.count
    case .object(let object): object.members.reduce(1) { $0 + $1.key.utf8.count + $1.value.textBytes }
    default: 1
    }
  }
}
