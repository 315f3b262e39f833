package import KeyValueModel

extension ObserverIndex {
  /// What does not hold of the index that must hold after every operation; empty when all is well. For tests.
  package func brokenInvariants(in reader: some ObjectReader) -> [String] {
    var broken: [String] = []
    var links = 0
    for (id, entry) in tracked {
      if reader.record(entry.observation.object) == nil { broken.append("\(entry.observation.object) is not there") }
      let expected = reader.dependencies(
        of: entry.observation.object, entry.entity, at: entry.observation.keyPath.keys)
      let expectedKeys = Set(expected.map(\.observedKey))
      if Set(entry.dependencies.map(\.observedKey)) != expectedKeys {
        broken.append("\(entry.observation.object) \(entry.observation.keyPath.text) follows an old path")
      }
      for key in expectedKeys where !ids(dependingOn: key).contains(id) {
        broken.append("\(entry.observation.object) \(entry.observation.keyPath.text) is not found by \(key)")
      }
      if !ids(of: entry.observation.object).contains(id) { broken.append("an observation is not found by its object") }
      links += expectedKeys.count
    }
    if linkCount != links { broken.append("the index has \(linkCount) links where \(links) are needed") }
    return broken
  }
}
