import KeyValueModel

/// What a writer learns of its objects from answers.
extension CrashWorld {
  /// The objects after a step that was answered, with its revision and the names that the server made.
  func acknowledging(_ step: CrashStep, _ answer: CrashAnswer) -> CrashWorld {
    var world = after(step)
    guard let revision = answer.cursor?.revision else { return world }
    for reference in touched(by: step) { world.revisions[reference] = revision }
    switch step {
    case .create:
      if let index = world.items.indices.last {
        let created = answer.json.member("@ref").text
        world.items[index].reference = world.items[index].reference ?? created
        world.revisions[created ?? ""] = revision
      }
    case .insert:
      world.learnEntries(answer.json)
    case .all:
      let created = answer.json.member("results").elements?.compactMap { $0.member("object").text }
        .last { $0.hasPrefix("Item/") }
      if let index = world.items.indices.last, let created {
        world.items[index].reference = created
        world.revisions[created] = revision
      }
    default: break
    }
    return world
  }

  /// Takes the names of the entries from the list as the server has it.
  mutating func learnEntries(_ list: Value) {
    let names = list.elements ?? []
    guard names.count == entries.count else { return }
    for (index, name) in names.enumerated() { entries[index].reference = entries[index].reference ?? name.text }
  }

  /// The objects whose revision shows when a step was done; none for a deletion.
  func revised(by step: CrashStep) -> [String] {
    var references = touched(by: step)
    switch step {
    case .create, .all:
      if let reference = items.last?.reference { references.append(reference) }
    default: break
    }
    return references
  }

  /// The same objects with the names and revisions that were read.
  func adopting(_ read: CrashWorld) -> CrashWorld {
    var world = self
    world.items = read.items
    world.entries = read.entries
    world.revisions = read.revisions
    return world
  }
}
