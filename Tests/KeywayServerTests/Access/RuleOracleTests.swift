import Foundation
import KeyValueModel
import KeywayClient
import KeywayServer
import TestKit
import Testing

/// Random schemas with rules, random transactions, and all responses and events of each identity, against `RuleWorld`.
@Suite("Rules against an oracle") struct RuleOracleTests {
  private static let rounds = 20
  private static let transactions = 25

  @Test("GET, fetches, live queries, streams and replays show what the oracle allows, and nothing else")
  func everything() throws {
    for round in 0..<Self.rounds {
      var random = SplitMix64(seed: seed, part: UInt64(round))
      let world = RuleWorld(using: &random)
      let run = try RuleRun(world, "seed \(seed), round \(round)")
      for _ in 0..<Self.transactions {
        try run.commit(using: &random)
        try run.check(using: &random)
      }
      #expect(run.commits > Self.transactions / 2, "\(run.name)")
    }
  }
}

/// One server with one world: its history, and the part that each identity may know.
final class RuleRun {
  /// A stream of an identity, with the value that it shows.
  private struct Watch {
    let identity: Int
    let object: String
    let path: String
    let stream: WireStream
    var shown = Value.null
    var isGone = false
  }

  /// A cell of a stream, as its client sees it.
  private struct ShownCell {
    let object: String
    let path: String
    var isVisible = true
    var shown = Value.null
    var isGone = false
    /// True if the object was unreadable at some revision since: then the cell is told that it is gone.
    var hasEnded = false
  }

  private struct Screen {
    let stream: WireStream
    let target: String
    var cells: [String: ShownCell] = [:]
  }

  let world: RuleWorld
  let name: String
  private let guarded: GuardedServer
  private let headers: [[String: String]]
  var state: RuleWorld.State = [:]
  private var number = 0
  /// The number of transactions that were not refused.
  private(set) var commits = 0
  /// The words that each identity may have seen: those of everything that it could read at some revision.
  private var words: [Set<String>] = Array(repeating: [], count: RuleWorld.identities.count)
  private var watches: [Watch] = []
  var lists: [(identity: Int, query: String, stream: WireStream, list: LiveList)] = []
  /// The cells of one stream of each identity with a token, by their names.
  private var screens: [Int: Screen] = [:]
  /// The positions of identities when their streams ended, to resume from.
  private var cursors: [(identity: Int, object: String, path: String, cursor: String, shown: Value?, hasEnded: Bool)] =
    []

  init(_ world: RuleWorld, _ name: String) throws {
    self.world = world
    self.name = name + ", " + world.schema
    let guarded = try GuardedServer(schema: world.schema, objects: [])
    self.guarded = guarded
    headers = RuleWorld.identities.map { identity in
      identity.name.map {
        guarded.bearer($0, roles: identity.roles, ["level": .integer(Int64(identity.level))])
      } ?? [:]
    }
  }

  // MARK: Writing

  private func word() -> String {
    number += 1
    return "w\(number)w"
  }

  private static func random(_ entity: String, using random: inout SplitMix64) -> String {
    "\(entity)/\(Int.random(in: 1...3, using: &random))"
  }

  private static func user(using random: inout SplitMix64) -> String {
    ["null", "\"ann\"", "\"bob\"", "\"eve\""].randomElement(using: &random) ?? "null"
  }

  private func body(_ reference: String, using random: inout SplitMix64) -> String {
    func known(_ entity: String) -> String {
      let target = Self.random(entity, using: &random)
      return state[target] == nil ? "null" : "\"\(target)\""
    }
    switch reference.split(separator: "/").first {
    case "Team": return #"{"open":\#(random.chance(50)),"code":"\#(word())"}"#
    case "Person":
      return
        #"{"user":\#(Self.user(using: &random)),"name":"\#(word())","secret":"\#(word())","team":\#(known("Team"))}"#
    default:
      let links = known("Doc")
      return
        #"{"user":\#(Self.user(using: &random)),"text":"\#(word())","level":\#(Int.random(in: 0...9, using: &random)),"#
        + #""owner":\#(known("Person")),"links":[\#(links == "null" || links == "\"\(reference)\"" ? "" : links)]}"#
    }
  }

  private func operation(using random: inout SplitMix64) -> String {
    let entity = ["Team", "Person", "Doc", "Doc"].randomElement(using: &random) ?? "Doc"
    let reference = Self.random(entity, using: &random)
    guard state[reference] != nil else {
      return #"{"op":"create","object":"\#(reference)","value":\#(body(reference, using: &random))}"#
    }
    func set(_ key: String, _ json: String) -> String {
      #"{"op":"set","object":"\#(reference)","keyPath":"\#(key)","value":\#(json)}"#
    }
    if random.chance(35) {
      return #"{"op":"patch","object":"\#(reference)","value":\#(body(reference, using: &random))}"#
    }
    if random.chance(8) { return #"{"op":"delete","object":"\#(reference)"}"# }
    let team = state["Team/1"] == nil ? "null" : "\"Team/1\""
    let choices =
      switch entity {
      case "Team": [set("open", "\(random.chance(50))"), set("code", "\"\(word())\"")]
      case "Person":
        [
          set("name", "\"\(word())\""), set("secret", "\"\(word())\""), set("user", Self.user(using: &random)),
          set("team", team),
        ]
      default:
        [
          set("text", "\"\(word())\""), set("level", "\(Int.random(in: 0...9, using: &random))"),
          set("user", Self.user(using: &random)), set("owner", state["Person/2"] == nil ? "null" : "\"Person/2\""),
          #"{"op":"patch","object":"\#(reference)","value":\#(body(reference, using: &random))}"#,
        ]
      }
    return choices.randomElement(using: &random) ?? choices[0]
  }

  func commit(using random: inout SplitMix64) throws {
    var named: Set<String> = []
    var operations: [String] = []
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      let operation = operation(using: &random)
      let object = operation.split(separator: "\"")[7]
      // Each object once, so that each written word is in the state after the transaction.
      if named.insert(String(object)).inserted { operations.append(operation) }
    }
    // One operation may delete an object that another names: such a transaction is refused, and changes nothing.
    let response = try guarded.client.send(
      "POST", "/v1/transactions", guarded.admin, body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    commits += response.status == 200 ? 1 : 0
    state = [:]
    for object in try guarded.client.must("GET", "/v1/objects?limit=1000", guarded.admin).json["objects"].items {
      guard case .object(let members) = object, let reference = object["@ref"].text else { continue }
      state[reference] = Dictionary(uniqueKeysWithValues: members.members.map { ($0.key, $0.value) })
    }
    for (index, identity) in RuleWorld.identities.enumerated() {
      for reference in state.keys {
        for value in (world.seen(reference, state, identity) ?? [:]).values {
          if let text = value.text, text.hasPrefix("w") { words[index].insert(text) }
        }
      }
    }
  }

  // MARK: Checking

  func check(using random: inout SplitMix64) throws {
    for (index, identity) in RuleWorld.identities.enumerated() {
      try checkReads(index, identity)
    }
    for (position, cut) in cursors.enumerated() {
      // A stream of an object that has been unreadable since ends there, even if it is readable again.
      if !world.mayRead(cut.object, state, RuleWorld.identities[cut.identity]) { cursors[position].hasEnded = true }
    }
    try checkWatches()
    try checkLists()
    try checkScreens()
    try watchMore(using: &random)
    for index in RuleWorld.identities.indices where RuleWorld.identities[index].name != nil {
      try scroll(index, using: &random)
    }
    try resume(using: &random)
  }

  /// Expects that a text sent to an identity contains no word that it could never read.
  func checkWords(_ text: String, _ index: Int, _ place: String) {
    for word in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber }) {
      guard word.hasPrefix("w"), word.hasSuffix("w"), Int(word.dropFirst().dropLast()) != nil else { continue }
      #expect(words[index].contains(String(word)), "\(name): \(place) told identity \(index): \(text)")
    }
  }

  func read(_ target: String, _ index: Int) throws -> WireResponse {
    let response = try guarded.client.send("GET", "/v1/objects/\(target)", headers[index])
    checkWords(response.text, index, target)
    return response
  }

  private func checkReads(_ index: Int, _ identity: RuleWorld.Identity) throws {
    let hidden = identity.name == nil ? 401 : 404
    for entity in ["Team", "Person", "Doc"] {
      var visible: [String] = []
      for number in 1...3 {
        let reference = "\(entity)/\(number)"
        let seen = world.seen(reference, state, identity)
        let response = try read(reference, index)
        #expect(response.status == (seen == nil ? hidden : 200), "\(name): \(reference) of identity \(index)")
        guard let seen else { continue }
        visible.append(reference)
        var body: RuleWorld.Object = [:]
        if case .object(let members) = response.json {
          for (key, value) in members.members where key != "@revision" { body[key] = value }
        }
        #expect(body == seen, "\(name): \(reference) of identity \(index)")
      }
      let fetched = try read("\(entity)?limit=2", index).json
      #expect(fetched["count"].whole == visible.count, "\(name): \(entity) of identity \(index)")
      #expect(fetched["objects"].items.compactMap { $0["@ref"].text } == Array(visible.prefix(2)))
    }
    for path in ["owner.name", "owner.team.code", "owner"] {
      for number in 1...3 where world.mayRead("Doc/\(number)", state, identity) {
        let value = try read("Doc/\(number)/\(path)", index).json
        #expect(value == world.value("Doc/\(number)", path, state, identity), "\(name): \(path) of identity \(index)")
      }
    }
    let filtered = try read("Doc?filter=owner.name%20!=%20null", index).json
    let expected = (1...3).map { "Doc/\($0)" }.filter {
      world.mayRead($0, state, identity) && !world.value($0, "owner.name", state, identity).isNull
    }
    #expect(filtered["objects"].items.compactMap { $0["@ref"].text } == expected, "\(name): filter, identity \(index)")
  }

  /// Checks that the streams' events alone lead to the values that the identities may see.
  private func checkWatches() throws {
    for position in watches.indices {
      let watch = watches[position]
      let identity = RuleWorld.identities[watch.identity]
      let isVisible = world.mayRead(watch.object, state, identity)
      let expected = world.value(watch.object, watch.path, state, identity)
      while isVisible ? watches[position].shown != expected : !watches[position].isGone {
        let event = try watch.stream.next()
        // A computed key reads hidden objects too, and is also evaluated between two operations.
        if watch.path != "label" { checkWords(event.data ?? "", watch.identity, "\(watch.object)/\(watch.path)") }
        apply(event, to: position)
      }
      #expect(isVisible != watches[position].isGone, "\(name): \(watch.object) of identity \(watch.identity)")
    }
    watches.removeAll(where: \.isGone)
  }

  private func apply(_ event: WireEvent, to position: Int) {
    let json = event.json
    if event.name == "gone" { watches[position].isGone = true }
    for change in json["changes"].items where change.has("new") { watches[position].shown = change["new"] }
  }

  /// Checks that the cells on screen show the values that the identities may see.
  private func checkScreens() throws {
    for index in Array(screens.keys) {
      for name in (screens[index]?.cells ?? [:]).keys {
        guard let cell = screens[index]?.cells[name] else { continue }
        let hasEnded = cell.hasEnded || !world.mayRead(cell.object, state, RuleWorld.identities[index])
        screens[index]?.cells[name]?.hasEnded = hasEnded
        guard cell.isVisible else { continue }
        let isVisible = !hasEnded
        let expected = world.value(cell.object, cell.path, state, RuleWorld.identities[index])
        while let now = screens[index]?.cells[name], isVisible ? now.shown != expected : !now.isGone {
          try readScreen(index)
        }
        #expect(screens[index]?.cells[name]?.isGone == !isVisible, "\(self.name): \(cell) of identity \(index)")
      }
    }
  }

  private func readScreen(_ index: Int) throws {
    guard let event = try screens[index]?.stream.next() else { return }
    checkWords(event.data ?? "", index, "cells")
    if event.name == "gone", let cell = event.json["cell"].text { screens[index]?.cells[cell]?.isGone = true }
    for change in event.json["changes"].items where change.has("new") {
      if let cell = change["cell"].text { screens[index]?.cells[cell]?.shown = change["new"] }
    }
  }

  /// Binds cells of one identity, and moves them on and off screen.
  private func scroll(_ index: Int, using random: inout SplitMix64) throws {
    if screens[index] == nil {
      let stream = try guarded.client.stream("/v1/streams", headers[index])
      let open = try stream.next()
      screens[index] = Screen(stream: stream, target: "/v1/streams/\(open.json["stream"].text ?? "")/cells")
    }
    guard let target = screens[index]?.target else { return }
    let name = "c\(Int.random(in: 1...4, using: &random))"
    if let cell = screens[index]?.cells[name], !cell.isGone, random.chance(60) {
      try guarded.client.must(
        "PATCH", "\(target)/\(name)", headers[index], body: #"{"visible":\#(!cell.isVisible)}"#)
      screens[index]?.cells[name]?.isVisible.toggle()
    } else {
      let object = Self.random("Doc", using: &random)
      let path = ["text", "owner.name", "owner.team.code"].randomElement(using: &random) ?? "text"
      // The same body again changes nothing.
      if let cell = screens[index]?.cells[name], !cell.isGone, cell.object == object, cell.path == path { return }
      let response = try guarded.client.send(
        "PUT", "\(target)/\(name)", headers[index],
        body: #"{"object":"\#(object)","keyPaths":["\#(path)"],"options":["new","old","initial"]}"#)
      let isVisible = world.mayRead(object, state, RuleWorld.identities[index])
      #expect(response.status == (isVisible ? 200 : 404), "\(self.name): \(object) of identity \(index)")
      guard isVisible else { return }
      screens[index]?.cells[name] = ShownCell(object: object, path: path, shown: .string("?"))
    }
    try checkScreens()
  }

  // MARK: Watching

  private func watchMore(using random: inout SplitMix64) throws {
    for index in RuleWorld.identities.indices where random.chance(40) {
      let object = Self.random("Doc", using: &random)
      if state[object] != nil, !world.mayRead(object, state, RuleWorld.identities[index]) {
        // A position at which the object was not readable.
        cursors.append((index, object, "text", guarded.cursor, nil, false))
      }
      let path = ["text", "owner.name", "owner.team.code", "label", "links"].randomElement(using: &random) ?? "text"
      guard world.mayRead(object, state, RuleWorld.identities[index]), path != "links" else { continue }
      let stream = try guarded.client.stream("/v1/objects/\(object)/\(path)?options=new,old,initial", headers[index])
      watches.append(Watch(identity: index, object: object, path: path, stream: stream, shown: .string("?")))
    }
    if lists.count < 6 {
      let index = RuleWorld.identities.indices.randomElement(using: &random) ?? 0
      let query =
        ["Doc", "Doc?sort=-level", "Doc?filter=owner.name%20!=%20null", "Person", "Team", Self.summedUp, Self.summedUp]
        .randomElement(using: &random) ?? "Doc"
      lists.append((index, query, try guarded.client.stream("/v1/objects/\(query)", headers[index]), LiveList()))
    }
    try checkWatches()
    try checkLists()
    // Some streams are cut, to be resumed later.
    for position in watches.indices.reversed() where random.chance(30) {
      let watch = watches.remove(at: position)
      guard let cursor = watch.stream.lastID else { continue }
      cursors.append((watch.identity, watch.object, watch.path, cursor, watch.shown, false))
      watch.stream.socket.close()
    }
  }

  /// Resumes streams that were cut: up to the present values, up to the end of the object, or from a reset.
  private func resume(using random: inout SplitMix64) throws {
    for position in cursors.indices.reversed() where random.chance(50) {
      let (index, object, path, cursor, shown, hasEnded) = cursors.remove(at: position)
      let isVisible = world.mayRead(object, state, RuleWorld.identities[index])
      var headers = headers[index]
      headers["Last-Event-ID"] = cursor
      let stream: WireStream
      do {
        stream = try guarded.client.stream("/v1/objects/\(object)/\(path)?options=new,old,initial", headers)
      } catch {
        #expect(!isVisible, "\(name): \(object) of identity \(index)")
        continue
      }
      if isVisible, shown == nil || !hasEnded {
        // Without further events, the value before the cut is still shown.
        guard let shown else {
          let first = try stream.next()
          #expect(first.name == "reset" && first.json["reason"].text == "compacted", "\(name): \(object)")
          continue
        }
        watches.append(Watch(identity: index, object: object, path: path, stream: stream, shown: shown))
      } else {
        #expect(shown != nil, "\(name): \(object) of identity \(index)")
        let events = try stream.rest()
        for event in events where path != "label" {
          checkWords(event.data ?? "", index, "replay of \(object)/\(path)")
        }
        #expect(events.contains { $0.name == "gone" }, "\(name): \(object) of identity \(index)")
      }
    }
    try checkWatches()
  }
}
