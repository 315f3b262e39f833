import KeyValueModel
import TestKit

/// What a writer learns of its objects from responses.
extension WriterObjects {
  /// The objects after a step that was acknowledged, with its revision and the names that the server made.
  func acknowledging(_ step: WriteStep, _ response: WireResponse) -> WriterObjects {
    var objects = after(step)
    guard let revision = Cursor(of: response)?.revision else { return objects }
    for reference in touched(by: step) { objects.revisions[reference] = revision }
    switch step {
    case .create:
      if let index = objects.items.indices.last {
        let created = response.json["@ref"].text
        objects.items[index].reference = objects.items[index].reference ?? created
        objects.revisions[created ?? ""] = revision
      }
    case .insert:
      objects.learnEntries(response.json)
    case .all:
      let created = response.json["results"].items.compactMap { $0["object"].text }
        .last { $0.hasPrefix("Item/") }
      if let index = objects.items.indices.last, let created {
        objects.items[index].reference = created
        objects.revisions[created] = revision
      }
    default: break
    }
    return objects
  }

  /// Takes the names of the entries from the list as the server has it.
  mutating func learnEntries(_ list: Value) {
    let names = list.items
    guard names.count == entries.count else { return }
    for (index, name) in names.enumerated() { entries[index].reference = entries[index].reference ?? name.text }
  }

  /// The objects whose revision shows when a step was done; none for a deletion.
  func revised(by step: WriteStep) -> [String] {
    var references = touched(by: step)
    switch step {
    case .create, .all:
      if let reference = items.last?.reference { references.append(reference) }
    default: break
    }
    return references
  }

  /// The same objects with the names and revisions that were read.
  func adopting(_ read: WriterObjects) -> WriterObjects {
    var objects = self
    objects.items = read.items
    objects.entries = read.entries
    objects.revisions = read.revisions
    return objects
  }
}
