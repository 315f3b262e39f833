import KeyValueModel

@testable import KeyValueObserving

extension ObserverIndex {
  /// Returns the faults of the index after an operation, compared with a new computation. Empty if there are none.
  func brokenInvariants(in reader: some ObjectReader) -> [String] {
    var broken: [String] = []
    var links = 0
    for (id, entry) in tracked.entries {
      let name = "\(entry.observation.object) \(entry.observation.keyPath.text)"
      if reader.record(entry.observation.object) == nil { broken.append("\(entry.observation.object) is not there") }
      let expected = dependencies(
        of: entry.observation.keyPath.reads, from: entry.observation.object, entry.entity, in: reader)
      let expectedKeys = Set(expected.map(\.observedKey))
      if Set(entry.dependencies.map(\.observedKey)) != expectedKeys { broken.append("\(name) follows an old path") }
      for key in expectedKeys where !listeners(dependingOn: key).contains(where: { $0.id == id }) {
        broken.append("\(name) is not found by \(key)")
      }
      if !ids(of: entry.observation.object).contains(id) { broken.append("an observation is not found by its object") }
      let folding = FoldingReader(base: reader, watches: collections)
      if entry.observation.value(in: folding) != entry.observation.value(in: reader) {
        broken.append("\(name) folds into another value than its members have")
      }
      links += expectedKeys.count
    }
    if linkCount != links { broken.append("the index has \(linkCount) links where \(links) are needed") }
    return broken + brokenWatches(in: reader)
  }

  private func dependencies(
    of tree: KeyTree, from object: Reference, _ entity: Entity, in reader: some ObjectReader
  ) -> [Dependency] {
    var walk = DependencyWalk(reader: reader, shapes: collections.shapes)
    walk.follow(tree, from: object, entity)
    return walk.found
  }

  private func brokenWatches(in reader: some ObjectReader) -> [String] {
    var broken: [String] = []
    var links = 0
    for (key, watch) in collections.watches {
      let name = "the watch of \(watch.list.object) \(watch.list.key)"
      if listeners(dependingOn: key).isEmpty, collections.links(dependingOn: key).isEmpty {
        broken.append("nobody depends on \(name)")
      }
      let members = Set(reader.members(of: watch.list))
      if Set(watch.links.keys) != members { broken.append("\(name) has other members than the collection") }
      for (member, link) in watch.links {
        links += Set(link.dependencies.map(\.observedKey)).count
        guard case .reference(let object) = member, let entity = reader.record(object)?.entity else { continue }
        let expected = dependencies(of: watch.branch.behind, from: object, entity, in: reader)
        if Set(link.dependencies) != Set(expected) { broken.append("\(name) follows an old path of \(object)") }
      }
    }
    if collections.linkCount != links {
      broken.append("the watches have \(collections.linkCount) links where \(links) are needed")
    }
    return broken
  }
}
