import KeyValueModel
import KeywayClient
import TestKit
import Testing

/// Live queries of the identities, against fetches and the aggregates of their rows.
extension RuleRun {
  /// A query whose filter fails for some objects, with aggregates.
  static let summedUp =
    "Doc?filter=owner.name%20%3C%20%27zzz%27&keys=level,owner.name&aggregate=@count,@sum.level,@max.owner.name"

  func checkLists() throws {
    for position in lists.indices {
      let (index, query, stream, _) = lists[position]
      let fetch = try read(query, index).json
      let rows = fetch["objects"].items
      while !lists[position].list.isCurrent || lists[position].list.rows.map({ plain($0.value) }) != rows.map(plain) {
        let event = try stream.next()
        checkWords(event.data ?? "", index, query)
        try lists[position].list.apply(
          ServerSentEvent(id: event.id ?? "", event: event.name ?? "", data: event.data ?? ""))
      }
      let list = lists[position].list
      #expect(list.total == rows.count && fetch["total"].whole == rows.count, "\(name): \(query)")
      // Aggregates contain nothing of rows that may not be read.
      guard query.contains("aggregate") else { continue }
      let levels = rows.map { $0["level"].whole ?? 0 }
      let texts = rows.compactMap { $0["owner.name"].text }
      let expected: JSONObject = [
        "@count": .integer(Int64(rows.count)), "@sum.level": .integer(Int64(levels.reduce(0, +))),
        "@max.owner.name": texts.max().map(Value.string) ?? .null,
      ]
      #expect(list.aggregates == expected, "\(name): aggregates of identity \(index)")
      #expect(fetch["aggregates"] == .object(expected), "\(name): aggregates of identity \(index)")
      let failures = failures(index)
      #expect(fetch["failed"].whole ?? 0 == failures, "\(name): failures of identity \(index)")
    }
  }

  /// Returns the number of objects that an identity sees and for which the filter of the aggregated list fails: those
  /// whose owner's name is null, or unreadable.
  private func failures(_ index: Int) -> Int {
    let identity = RuleWorld.identities[index]
    return (1...3).map { "Doc/\($0)" }.count {
      world.mayRead($0, state, identity) && world.value($0, "owner.name", state, identity).isNull
    }
  }

  private func plain(_ value: Value) -> Value {
    guard case .object(let object) = value else { return value }
    return plain(object)
  }

  private func plain(_ object: JSONObject) -> Value {
    var object = object
    object["@revision"] = nil
    return .object(object)
  }
}
