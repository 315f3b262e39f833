import Testing

@testable import KeyValueModel

@Suite struct ReferrersTests {
  @Test("Objects whose names have the same hash are told apart, and a state that comes back tells them apart, too")
  func equalHashes() throws {
    var fixture = try Fixture("entities: {Item: {keys: {next: {toOne: Item}}}}")
    let (first, second) = try Self.namesOfOneHash()
    for name in ["1", "2", "3"] { try fixture.create("Item/\(name)") }
    for name in [first, second] { try fixture.create(name.text) }
    try fixture.set("Item/1", "next", "\"\(first)\"")
    try fixture.set("Item/2", "next", "\"\(second)\"")
    try fixture.set("Item/3", "next", "\"\(second)\"")
    for state in [fixture.model.state, try Self.restored(fixture.model.state)] {
      var model = Model(state: state, revision: fixture.model.revision)
      #expect(model.state.referrers(of: first).map(\.object.id) == ["1"])
      #expect(model.state.referrers(of: second).map(\.object.id) == ["2", "3"])
      _ = try model.commit(Transaction([.set(try ref("Item/3"), keyPath: "next", .string(first.text))]))
      #expect(model.state.referrers(of: first).map(\.object.id) == ["1", "3"])
      _ = try model.commit(Transaction([.delete(first)]))
      #expect(model.state.referrers(of: first).isEmpty)
      #expect(model.state.referrers(of: second).map(\.object.id) == ["2"])
      #expect(model.state.record(try ref("Item/2"))?.values[0] == .reference(second))
      #expect(inconsistencies(in: model.state, others: ([first], [])) == [])
    }
  }

  /// Finds two names with the same 32-bit hash, as some ten thousand names contain. They differ in each process.
  private static func namesOfOneHash() throws -> (Reference, Reference) {
    var names: [UInt64: Reference] = [:]
    let source = try ref("Item/source")
    for number in 0..<10_000_000 {
      let name = try ref("Item/n\(number)")
      let hash = Referrers.Link(to: name, from: source, 0).order
      if let other = names.updateValue(name, forKey: hash) { return (other, name) }
    }
    throw NoNames()
  }

  private struct NoNames: Error {}

  private static func restored(_ state: ModelState) throws -> ModelState {
    var decoder = StateDecoder(schema: state.schema)
    for block in StateTextTests.blocks(of: state) {
      decoder.insert(try StateDecoder.block(of: block, schema: state.schema))
    }
    return try decoder.finish()
  }
}
