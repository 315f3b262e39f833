import KeyValueModel
import TestKit

/// Random transactions on the airports of the example, all of which the server accepts.
struct RandomAirports {
  private let client: WireClient
  private var random: SplitMix64
  /// The existing objects that the transactions change.
  private(set) var references: [String]
  private var created = 0

  /// Creates transactions on so many of the existing airports of some states.
  init(_ client: WireClient, states: [String], count: Int, seed: UInt64) throws {
    self.client = client
    random = SplitMix64(seed: seed)
    references = []
    for state in states {
      let page = try client.json("/v1/objects/Airport?filter=state=='\(state)'&keys=state&limit=\(count)")
      references += page["objects"].items.compactMap { $0["@ref"].text }
    }
  }

  /// Commits one transaction of one to five operations.
  mutating func commit() throws {
    var operations: [Value] = []
    for _ in 0..<Int.random(in: 1...5, using: &random) { operations += self.operations() }
    let body = Value.object(["operations": .array(operations)]).json
    try client.must("POST", "/v1/transactions", body: body)
  }

  private mutating func operations() -> [Value] {
    guard let place = references.indices.randomElement(using: &random) else { return [create()] }
    let reference = references[place]
    switch Int.random(in: 0..<20, using: &random) {
    case 0, 1:
      return [create()]
    case 2, 3:
      references.remove(at: place)
      return [delete(reference)]
    case 4:
      return [delete(reference), create(reference)]
    case 5...8:
      return [set(reference, "state", state())]
    case 9...13:
      return [set(reference, "latitude", latitude())]
    case 14...16:
      return [set(reference, "city", city())]
    default:
      return [set(reference, "name", .string("Field \(Int.random(in: 0..<50, using: &random))"))]
    }
  }

  private mutating func create() -> Value {
    created += 1
    let reference = "Airport/new-\(created)"
    references.append(reference)
    return create(reference)
  }

  private mutating func create(_ reference: String) -> Value {
    let value: JSONObject = [
      "iata": .string("NEW"), "name": .string("New Field"), "city": city(), "state": state(), "latitude": latitude(),
    ]
    return .object(["op": .string("create"), "object": .string(reference), "value": .object(value)])
  }

  private func delete(_ reference: String) -> Value {
    .object(["op": .string("delete"), "object": .string(reference)])
  }

  private func set(_ reference: String, _ key: String, _ value: Value) -> Value {
    .object(["op": .string("set"), "object": .string(reference), "keyPath": .string(key), "value": value])
  }

  // So few cities that many are equal, and a state so rare that its section is inserted and removed.
  private mutating func city() -> Value {
    let cities = ["Austin", "austin", "Dallas", "El Paso", "Łódź", "東京"]
    let number = Int.random(in: 0..<20, using: &random)
    return number == 0 ? .null : .string(cities[number % cities.count])
  }

  private mutating func state() -> Value {
    let number = Int.random(in: 0..<60, using: &random)
    let states = ["TX", "NM", "OK", "CA"]
    return number == 0 ? .string("AA") : number < 5 ? .null : .string(states[number % states.count])
  }

  private mutating func latitude() -> Value {
    let number = Int.random(in: 0..<40, using: &random)
    return number == 0 ? .null : .number(Double(Int.random(in: 2600...3800, using: &random)) / 100)
  }
}
