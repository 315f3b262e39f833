import KeyValueModel
import KeyValueObserving
import TestKit
import Testing

@Suite("Observing options")
struct ObservingOptionsTests {
  static let all = (0..<16).map { ObservingOptions(rawValue: UInt8($0)) }

  @Test("Options shape the payload and never whether there is a change", arguments: all)
  func payload(options: ObservingOptions) throws {
    var fixture = try Fixture("entities: {A: {keys: {x: {type: integer}}}}", "create A/1 {\"x\":1}")
    try fixture.observe("A/1.x", options: options)
    let told = try fixture.told("set A/1 x 2", "set A/1 x null")
    func change(_ old: String, _ new: String) -> [String] {
      let old = options.contains(.old) ? " old=\(old)" : ""
      let new = options.contains(.new) ? " new=\(new)" : ""
      return (options.contains(.prior) ? ["A/1.x prior\(old)"] : []) + ["A/1.x\(old)\(new)"]
    }
    #expect(told == change("1", "2") + change("2", "null"))
  }

  @Test("The first notification is the whole value if new was asked for, never old and never prior", arguments: all)
  func initial(options: ObservingOptions) throws {
    let fixture = try Fixture("entities: {A: {keys: {x: {type: integer}}}}", "create A/1")
    let observation = try fixture.observation("A/1", "x", options, context: "c")
    let change = observation.initialChange(cell: "k", in: fixture.model.state)
    #expect(line(change) == "[k] A/1.x" + (options.contains(.new) ? " new=null" : "") + " context=c")
    #expect(!change.isPrior)
    #expect(change.kind == .setting)
  }

  @Test("Options have names", arguments: all)
  func names(options: ObservingOptions) {
    let named = options.optionNames.compactMap(ObservingOptions.init(name:))
    #expect(ObservingOptions(named) == options)
    #expect(ObservingOptions(name: "none") == nil)
  }

  @Test("Identical registrations are two, and one observer's options never shape another's payload")
  func independence() throws {
    var fixture = try Fixture("entities: {A: {keys: {x: {type: integer}}}}", "create A/1 {\"x\":1}")
    try fixture.observe("A/1.x", options: [.new])
    try fixture.observe("A/1.x", options: [.new])
    try fixture.observe("A/1.x", options: [.old, .prior], observer: 2)
    try fixture.observe("A/1.x", options: [], observer: 3)
    let events = try fixture.apply(["set A/1 x 2"])
    #expect(events[1].map(lines) == ["A/1.x new=2", "A/1.x new=2"])
    #expect(events[2].map(lines) == ["A/1.x prior old=1", "A/1.x old=1"])
    #expect(events[3].map(lines) == ["A/1.x"])
    fixture.index.remove(ObserverID(2))
    #expect(Set(try fixture.apply(["set A/1 x 2"]).keys) == [1, 3])
    fixture.index.remove(ObserverID(1), cell: nil)
    #expect(fixture.index.count == 1)
    fixture.index.remove(ObserverID(3))
    fixture.index.remove(ObserverID(3))
    #expect(fixture.index.count == 0)
    #expect(fixture.index.brokenInvariants(in: fixture.model.state).isEmpty)
  }

  @Test("Priors within one operation come in order, and the changes as their exact mirror")
  func mirror() throws {
    var fixture = try Fixture(
      "entities: {A: {keys: {x: {type: integer}, y: {type: integer}, c: {computed: x}, d: {computed: c}}}}",
      "create A/1 {\"x\":1,\"y\":1}")
    try fixture.observe("A/1.d", "A/1.y", "A/1.c", "A/1.x", options: [.prior, .old, .new])
    #expect(
      try fixture.told("patch A/1 {\"x\":2,\"y\":3}") == [
        "A/1.x prior old=1", "A/1.c prior old=1", "A/1.d prior old=1", "A/1.y prior old=1",
        "A/1.y old=1 new=3", "A/1.d old=1 new=2", "A/1.c old=1 new=2", "A/1.x old=1 new=2",
      ])
    #expect(
      try fixture.told("patch A/1 {\"y\":4,\"x\":2}").prefix(4) == [
        "A/1.y prior old=3", "A/1.x prior old=2", "A/1.c prior old=2", "A/1.d prior old=2",
      ])
  }

  @Test("Notifications do not depend on the order of registration")
  func registrationOrder() throws {
    let cells = [("a", "A/1.x"), ("b", "A/1.c"), ("c", "A/1.x"), ("d", "A/1.d")]
    var results: Set<[String]> = []
    var random = SplitMix64(seed: seed)
    for _ in 0..<10 {
      var fixture = try Fixture(
        "entities: {A: {keys: {x: {type: integer}, c: {computed: x}, d: {computed: c}}}}", "create A/1 {\"x\":1}")
      for (cell, target) in cells.shuffled(using: &random) {
        try fixture.observe(target, options: [.prior, .new], cell: cell)
      }
      results.insert(try fixture.told("set A/1 x 5"))
    }
    #expect(results.count == 1)
  }
}
