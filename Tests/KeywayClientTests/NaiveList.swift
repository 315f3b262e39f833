import KeyValueModel
import TestKit

/// A live list as plain arrays, with contents by the most obvious method: the oracle of `LiveListTests`.
struct NaiveList: Equatable {
  struct Row: Equatable {
    var reference: String
    var value: Value
  }

  struct Section: Equatable {
    var name: Value?
    var rows: [Row]
  }

  var sections: [Section]

  var rows: [Row] { sections.flatMap(\.rows) }

  /// Makes a list of some of the first `objects` objects, in any order, in sections with some of `names`, or in none.
  static func random(objects: Int, names: [String]?, using random: inout SplitMix64) -> NaiveList {
    let count = Int.random(in: 0...objects, using: &random)
    let rows = (0..<objects).shuffled(using: &random).prefix(count).map { number in
      let value = Int64.random(in: 0..<3, using: &random)
      return Row(
        reference: "A/\(number)", value: .object(["@ref": .string("A/\(number)"), "size": .integer(value)]))
    }
    guard let names else { return NaiveList(sections: [Section(name: nil, rows: rows)]) }
    var sections = names.map { Section(name: .string($0), rows: []) }
    for row in rows { sections[Int.random(in: 0..<sections.count, using: &random)].rows.append(row) }
    return NaiveList(sections: sections.filter { !$0.rows.isEmpty })
  }

  /// Returns the `results` of the list.
  func results(revision: Int) -> Value {
    var object: JSONObject = [
      "revision": .integer(Int64(revision)), "initial": .bool(true), "count": .integer(Int64(rows.count)),
      "total": .integer(Int64(rows.count)),
      "objects": .array(rows.map(\.value)),
    ]
    if !isFlat {
      object["sections"] = .array(
        sections.map { .object(["name": $0.name ?? .null, "count": .integer(Int64($0.rows.count))]) })
    }
    return .object(object)
  }

  /// Makes a `content` from this list to another: a row in both lists stays or moves, at random and as the order
  /// allows.
  func content(to after: NaiveList, revision: Int, using random: inout SplitMix64) -> Value {
    var changes: [Value] = []
    var stays: [String] = []
    for row in rows.shuffled(using: &random) where Bool.random(using: &random) {
      if staysInOrder(stays + [row.reference], in: after) { stays.append(row.reference) }
    }
    for row in rows where after.place(row.reference) == nil {
      changes.append(change("delete", row.reference, index: place(row.reference), reason: "left"))
    }
    for row in after.rows {
      let old = place(row.reference)
      let new = after.place(row.reference)
      let isOther = rows.first { $0.reference == row.reference }?.value != row.value
      if old == nil {
        changes.append(change("insert", row.reference, newIndex: new, value: row.value, reason: "entered"))
      } else if !stays.contains(row.reference) {
        changes.append(change("move", row.reference, index: old, newIndex: new, value: row.value))
      } else if isOther || Bool.random(using: &random) {
        changes.append(change("update", row.reference, index: old, newIndex: new, value: row.value))
      }
    }
    var object: JSONObject = [
      "revision": .integer(Int64(revision)), "count": .integer(Int64(after.rows.count)),
      "total": .integer(Int64(after.rows.count)),
      "changes": .array(changes.shuffled(using: &random)),
    ]
    let sectionChanges = self.sectionChanges(to: after)
    if !sectionChanges.isEmpty { object["sectionChanges"] = .array(sectionChanges.shuffled(using: &random)) }
    return .object(object)
  }

  private var isFlat: Bool { sections.count == 1 && sections[0].name == nil }

  private func sectionChanges(to after: NaiveList) -> [Value] {
    let gone = sections.enumerated().filter { pair in !after.sections.contains { $0.name == pair.element.name } }
    let come = after.sections.enumerated().filter { pair in !sections.contains { $0.name == pair.element.name } }
    return gone.map {
      .object(["type": .string("delete"), "name": $0.element.name ?? .null, "index": .integer(Int64($0.offset))])
    }
      + come.map {
        .object(["type": .string("insert"), "name": $0.element.name ?? .null, "newIndex": .integer(Int64($0.offset))])
      }
  }

  private func staysInOrder(_ references: [String], in after: NaiveList) -> Bool {
    let wanted = Set(references)
    for section in sections {
      let before = section.rows.map(\.reference).filter(wanted.contains)
      let same = after.sections.first { $0.name == section.name }
      guard before == (same?.rows ?? []).map(\.reference).filter(wanted.contains) else { return false }
    }
    return true
  }

  private func place(_ reference: String) -> Value? {
    for (section, part) in sections.enumerated() {
      guard let row = part.rows.firstIndex(where: { $0.reference == reference }) else { continue }
      return isFlat ? .integer(Int64(row)) : .array([.integer(Int64(section)), .integer(Int64(row))])
    }
    return nil
  }

  private func change(
    _ type: String, _ reference: String, index: Value? = nil, newIndex: Value? = nil, value: Value? = nil,
    reason: String? = nil
  ) -> Value {
    var change: JSONObject = ["type": .string(type), "object": .string(reference)]
    change["index"] = index
    change["newIndex"] = newIndex
    change["reason"] = reason.map { .string($0) }
    change["value"] = value
    return .object(change)
  }
}
