import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Filters on indexed keys")
struct IndexedFilterTests {
  private static let schema = """
    entities:
      Item:
        keys:
          code: { type: string, indexed: true }
          number: { type: integer, indexed: true }
          price: { type: number, indexed: true }
          day: { type: date, indexed: true }
          isListed: { type: boolean, indexed: true }
          info: { type: json, indexed: true }
          shelf: { toOne: BoundedCache, inverse: items, indexed: true }
          weight: { type: number }
          loose: { type: string }
      SpecialItem:
        extends: Item
        keys:
          note: { type: string }
      BoundedCache:
        keys:
          items: { toMany: Item, inverse: shelf }
    """

  /// A cost that suffices to read 400 objects, but not to evaluate a condition for each.
  private static let cost = 800

  private let server: TestServer

  init() throws {
    server = try TestServer(schema: Self.schema, objects: []) { $0.requests.steps = Self.cost }
    var operations = (0..<150).map { #"{"op":"create","object":"BoundedCache/\#($0)","value":{}}"# }
    for index in 0..<400 {
      let entity = index % 2 == 0 ? "Item" : "SpecialItem"
      var value = #""code":"c\#(index / 3)","number":\#(index / 3),"price":\#(index / 3).5,"weight":\#(index)"#
      value += #","day":"\#(Self.day(index / 3))","info":\#(index / 3)"#
      value += #","shelf":"BoundedCache/\#(index / 3)","isListed":\#(index != 7),"loose":"c\#(index / 3)""#
      // Three have no other value.
      if index >= 397 { value = #""weight":\#(index)"# }
      operations.append(#"{"op":"create","object":"\#(entity)/\#(index)","value":{\#(value)}}"#)
    }
    try server.client.must(
      "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
  }

  /// Returns a day of the years 2000 to 2012, in one of the forms of a date.
  private static func day(_ number: Int) -> String {
    let day = "\(2000 + number / 12)-\(number % 12 < 9 ? "0" : "")\(number % 12 + 1)-01"
    return number % 2 == 0 ? day : day + "T02:00:00+02:00"
  }

  private func fetch(_ filter: String, _ entity: String = "Item") throws -> WireResponse {
    try server.client.send("GET", "/v1/objects/\(entity)?keys=weight&filter=" + filter.queryEncoded)
  }

  /// Returns the references of the objects found, or the problem's code if the filter was refused.
  private func found(_ filter: String, _ entity: String = "Item") throws -> [String] {
    let response = try fetch(filter, entity)
    guard response.status == 200 else { return [response.problem ?? "\(response.status)"] }
    return response.json["objects"].items.compactMap { $0["@ref"].text }
  }

  private static let threeOfFive = ["Item/16", "SpecialItem/15", "SpecialItem/17"]
  private static let nothing = ["Item/398", "SpecialItem/397", "SpecialItem/399"]

  static let indexed: [(filter: String, found: [String])] = [
    ("code == 'c5'", threeOfFive), ("'c5' == code", threeOfFive), ("this.code == 'c5'", threeOfFive),
    ("number == 5", threeOfFive), ("info == 'five'", []), ("number == 5.0", threeOfFive), ("number == 5u", threeOfFive),
    ("price == 5.5", threeOfFive), ("shelf == 'BoundedCache/5'", threeOfFive),
    ("isListed == false", ["SpecialItem/7"]),
    ("day == timestamp('2000-06-01T00:00:00Z')", threeOfFive),
    ("timestamp('2000-06-01T01:00:00+01:00') == day", threeOfFive),
    ("this.day == timestamp('2000-05-31T19:00:00.000-05:00')", threeOfFive),
    ("day == timestamp(959817600)", threeOfFive),
    ("code == null", nothing), ("shelf == null", nothing), ("day == null", nothing), ("null == number", nothing),
    ("isListed == null", nothing), ("info == null", nothing),
    ("code == 'none'", []), ("number == -1", []), ("shelf == 'BoundedCache/404'", []),
    ("day == timestamp('1900-01-01T00:00:00Z')", []),
    ("weight == 16.0 && code == 'c5'", ["Item/16"]),
    ("code == 'c5' && weight > 15.0 && true", ["Item/16", "SpecialItem/17"]),
    ("isListed == true && code == 'c5'", threeOfFive),
    ("shelf == 'BoundedCache/5' && number == 5 && 1.0 / weight > 0.0", threeOfFive),
    ("(weight > 0.0 && (price == 5.5 && weight < 17.0))", ["Item/16", "SpecialItem/15"]),
    ("code == 'c5' && code == 'c6'", []),
    ("day == timestamp('2000-06-01T00:00:00Z') && weight == 17.0", ["SpecialItem/17"]),
    ("code == 'c5' && shelf.items.exists(i, i.weight == 16.0)", threeOfFive),
  ]

  @Test("An equality with an indexed key looks at the objects that have the value only")
  func index() throws {
    for (filter, expected) in Self.indexed { #expect(try found(filter) == expected, "\(filter)") }
  }

  static let scans = [
    "weight == 16.0", "loose == 'c5'", "info == 5", "code != 'c5'", "code == 'c5' || number == 5",
    "number < 1", "code.startsWith('c5')", "!(code == 'c5')", "shelf.items.size() == 3", "code == loose", "isListed",
    "isListed == true", "true || number == 5", "code == 'c5' ? true : false",
    "day < timestamp('2000-01-01T00:00:00Z')",
  ]

  @Test("Without a usable index every object is evaluated, which costs too much here")
  func scan() throws {
    for filter in Self.scans {
      let response = try fetch(filter)
      #expect(response.status == 429 && response.problem == "too-many-steps", "\(filter)")
      #expect(response.json["detail"].text?.contains("request.steps") == true, "\(filter)")
    }
  }

  @Test("A fetch of a subclass finds its own objects only, by the index as well")
  func subclass() throws {
    #expect(try found("code == 'c5'", "SpecialItem") == ["SpecialItem/15", "SpecialItem/17"])
    #expect(try found("code == null && note == null", "SpecialItem") == ["SpecialItem/397", "SpecialItem/399"])
  }

  @Test("An index follows what is set, set to null, deleted and made anew")
  func changes() throws {
    try server.set("Item/16/code", #""new""#)
    #expect(try found("code == 'new'") == ["Item/16"])
    #expect(try found("code == 'c5'") == ["SpecialItem/15", "SpecialItem/17"])
    try server.client.must("DELETE", "/v1/objects/SpecialItem/15/code")
    #expect(try found("code == null") == ["Item/398", "SpecialItem/15", "SpecialItem/397", "SpecialItem/399"])
    try server.client.must("DELETE", "/v1/objects/SpecialItem/17")
    #expect(try found("code == 'c5'").isEmpty)
    try server.client.must("PUT", "/v1/objects/SpecialItem/17", body: #"{"code":"c5"}"#)
    #expect(try found("code == 'c5'") == ["SpecialItem/17"])
    try server.client.must(
      "PATCH", "/v1/objects/SpecialItem/17", body: #"{"code":"c6","day":"2000-06-01T00:00:00.0Z"}"#)
    #expect(try found("code == 'c5'").isEmpty)
    #expect(
      try found("day == timestamp('2000-06-01T00:00:00Z')") == ["Item/16", "SpecialItem/15", "SpecialItem/17"])
    let refused = try server.client.send(
      "POST", "/v1/transactions",
      body:
        #"{"operations":[{"op":"set","object":"Item/16","keyPath":"code","value":"c9"},"#
        + #"{"op":"delete","object":"X/1"}]}"#
    )
    #expect(refused.status == 404)
    #expect(try found("code == 'new'") == ["Item/16"])
  }

  @Test("An index on a to-one follows the other side: members that come and go, and a shelf that is deleted")
  func inverse() throws {
    try server.client.must("POST", "/v1/objects/BoundedCache/5/items", body: #""Item/398""#)
    #expect(try found("shelf == 'BoundedCache/5'") == ["Item/16", "Item/398", "SpecialItem/15", "SpecialItem/17"])
    try server.client.must("DELETE", "/v1/objects/BoundedCache/5/items?object=SpecialItem/15")
    #expect(try found("shelf == 'BoundedCache/5'") == ["Item/16", "Item/398", "SpecialItem/17"])
    try server.client.must("DELETE", "/v1/objects/BoundedCache/5")
    #expect(try found("shelf == 'BoundedCache/5'").isEmpty)
    #expect(try found("shelf == null").count == 6)
  }

  @Test("Numbers that are written otherwise are the same value to the index, as they are to ==")
  func numbers() throws {
    for (json, filter) in [
      ("1.0", "info == 1"), ("1", "info == 1.0"), ("-0.0", "price == 0.0"), ("0", "price == -0.0"),
    ] {
      let key = filter.hasPrefix("info") ? "info" : "price"
      try server.set("SpecialItem/17/\(key)", json)
      #expect(try found(filter + " && code == 'c5'") == ["SpecialItem/17"], "\(json): \(filter)")
    }
  }

  @Test("Integers beyond 2^53 are found by a double as they are without the index: several by one")
  func largeNumbers() throws {
    try server.set("Item/16/number", "9007199254740993")
    try server.set("SpecialItem/15/number", "9007199254740992")
    #expect(try found("number == 9007199254740993") == ["Item/16"])
    let both = ["Item/16", "SpecialItem/15"]
    #expect(try found("number == 9007199254740992.0 && code == 'c5'") == both)
  }

  @Test("Random traffic leaves every index with what looking at all objects finds")
  func traffic() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let number = Int.random(in: 0..<12, using: &random)
      let reference = number % 2 == 0 ? "Item/r\(number)" : "SpecialItem/r\(number)"
      let code = ["null", #""a""#, #""b""#].randomElement(using: &random) ?? "null"
      let shelf = ["null", #""BoundedCache/1""#, #""BoundedCache/2""#].randomElement(using: &random) ?? "null"
      if Int.random(in: 0..<4, using: &random) == 0 {
        try server.client.send("DELETE", "/v1/objects/\(reference)")
      } else {
        try server.client.must(
          "PUT", "/v1/objects/\(reference)", body: #"{"code":\#(code),"shelf":\#(shelf),"weight":-1}"#)
      }
    }
    let all = try server.client.json("/v1/objects/Item?limit=1000")["objects"].items
    for (key, name) in [("code", "a"), ("code", "b"), ("shelf", "BoundedCache/1"), ("shelf", "BoundedCache/2")] {
      let expected = all.filter { $0[key].text == name }.compactMap { $0["@ref"].text }
      #expect(try found("\(key) == '\(name)'") == expected, "\(key) \(name), seed \(seed)")
    }
  }
}
