@testable import KeyValueModel

/// Everything that is in a model, one line a thing: objects with revisions and values, extents, referrers, the revision.
func portrayal(of model: Model) -> [String] {
  let state = model.state
  var lines = ["revision \(model.revision), \(state.count) objects"]
  for entity in state.schema.entities {
    let references = state.references(of: entity)
    lines.append("\(entity.name): \(references)")
    for reference in references {
      guard let record = state.record(reference) else { continue }
      let values = record.values.map(\.json).joined(separator: " ")
      lines.append("\(reference) of \(record.entity.name) @\(record.revision) from \(record.createdAt): \(values)")
      lines.append("\(reference) named by \(state.referrers(of: reference).map { "\($0.object).\($0.storage)" })")
    }
  }
  return lines
}

/// Who names whom, found by looking at every object: what the referrers of a state must be.
func brokenReferrers(in state: ModelState) -> [String] {
  var expected: [Reference: Set<String>] = [:]
  var all: Set<Reference> = []
  for entity in state.schema.entities {
    for reference in state.references(of: entity) {
      all.insert(reference)
      guard let record = state.record(reference) else { continue }
      for key in record.entity.keys {
        guard let storage = key.storage, case .reference(let target) = record.values[storage] else { continue }
        expected[target, default: []].insert("\(reference).\(storage)")
      }
    }
  }
  var broken: [String] = []
  for target in expected.keys where !all.contains(target) { broken.append("\(target) is named and not there") }
  for reference in all {
    let found = Set(state.referrers(of: reference).map { "\($0.object).\($0.storage)" })
    if found != expected[reference] ?? [] { broken.append("\(reference): \(found)") }
  }
  return broken
}
