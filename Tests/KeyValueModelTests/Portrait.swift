
@testable import KeyValueModel

/// Everything that is in a model, one line a thing: objects with revisions and values, members in their order, extents,
/// referrers, the revision.
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
