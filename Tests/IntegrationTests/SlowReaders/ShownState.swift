import KeyValueModel
import KeywayClient
import TestKit

/// The state of a client that applies every event exactly as the specification says, with the faults of the events.
struct ShownState {
  /// An observed key path of an object, in one cell or in the stream itself.
  struct Place: Hashable {
    var cell: String?
    var object: String
    var keyPath: String
  }

  private(set) var values: [Place: Value] = [:]
  private(set) var lists: [String?: LiveList] = [:]
  /// The number of changes of each place; a merged one counts as the changes that it replaces.
  private(set) var changes: [Place: Int] = [:]
  /// The same for the contents of queries.
  private(set) var contents: [String?: Int] = [:]
  /// The cells that received their state again. Their counts do not include the changes that they missed before.
  private(set) var renewed: Set<String?> = []
  /// The objects that cells, or the stream, lost.
  private(set) var gone: [(cell: String?, object: String)] = []
  /// The number of merged changes and contents.
  private(set) var merged = 0
  private(set) var revision = 0
  private(set) var mistakes: [String] = []

  /// Applies one event.
  mutating func apply(_ event: WireEvent) {
    let data = event.json
    if let told = data["revision"].whole {
      if told < revision { mistakes.append("\(told) came after \(revision)") }
      revision = max(revision, told)
    }
    switch event.name {
    case "change": for change in event.changes { apply(change, isInitial: data["initial"] == .bool(true)) }
    case "results": replace(data)
    case "content": apply(content: data)
    case "gone":
      gone.append((data["cell"].text, data["object"].text ?? ""))
      values = values.filter { $0.key.cell != data["cell"].text || $0.key.object != data["object"].text }
    default: break
    }
  }

  private mutating func apply(_ change: Value, isInitial: Bool) {
    let place = Place(
      cell: change["cell"].text, object: change["object"].text ?? "", keyPath: change["keyPath"].text ?? "")
    if isInitial {
      if values[place] != nil { renewed.insert(place.cell) }
      return values[place] = change["new"]
    }
    if change.has("coalesced") { merged += 1 }
    changes[place, default: 0] += change["coalesced"].whole ?? 1
    guard let shown = values[place] else { return mistakes.append("nothing is shown of \(place)") }
    var wrong = false
    switch change["kind"].text {
    case "setting":
      wrong = change["old"] != shown
      values[place] = change["new"]
    case "insertion", "removal", "replacement":
      wrong = !move(change, at: place, shown.items)
    default: wrong = true
    }
    if wrong { mistakes.append("\(place) shows \(Self.short(shown)) and is told \(Self.short(change))") }
  }

  /// Applies an indexed change, or one of a set. Returns false if it does not match the shown value.
  private mutating func move(_ change: Value, at place: Place, _ shown: [Value]) -> Bool {
    guard change.has("indexes") else {
      let (old, new) = (change["old"].items, change["new"].items)
      values[place] = .array(shown.filter { !old.contains($0) } + new)
      return old.allSatisfy(shown.contains) && !new.contains(where: shown.contains)
    }
    let indexes = change["indexes"].items.compactMap(\.whole)
    var members = shown
    if change["kind"].text != "insertion" {
      guard indexes.allSatisfy(members.indices.contains), indexes.map({ members[$0] }) == change["old"].items else {
        return false
      }
      for index in indexes.reversed() { members.remove(at: index) }
    }
    if change["kind"].text != "removal" {
      for (index, member) in zip(indexes, change["new"].items) {
        guard index <= members.count else { return false }
        members.insert(member, at: index)
      }
    }
    values[place] = .array(members)
    return true
  }

  private mutating func replace(_ data: Value) {
    let cell = data["cell"].text
    if lists[cell] != nil, data["initial"] == .bool(true) { renewed.insert(cell) }
    count(data, cell, isInitial: data["initial"] == .bool(true))
    do { try lists[cell, default: LiveList()].replace(results: data) } catch { mistakes.append("\(error)") }
  }

  private mutating func apply(content data: Value) {
    let cell = data["cell"].text
    count(data, cell, isInitial: false)
    guard var list = lists[cell] else { return mistakes.append("content without results") }
    do {
      try list.apply(LiveContent(data, isSectioned: list.isSectioned))
    } catch {
      mistakes.append("\(error)")
    }
    lists[cell] = list
  }

  private mutating func count(_ data: Value, _ cell: String?, isInitial: Bool) {
    guard !isInitial else { return }
    if data.has("coalesced") { merged += 1 }
    contents[cell, default: 0] += data["coalesced"].whole ?? 1
  }

  private static func short(_ value: Value) -> String {
    let text = value.json
    return text.count < 300 ? text : "\(text.prefix(200)) … \(text.suffix(90))"
  }
}
