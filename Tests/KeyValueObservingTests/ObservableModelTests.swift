import KeyValueModel
import KeyValueObserving
import Testing

@Suite("A model with its observers in one process")
struct ObservableModelTests {
  let model: ObservableModel
  let account: Reference

  init() throws {
    let schema = try Schema(yaml: "entities: {Account: {keys: {balance: {type: number}, owner: {toOne: Account}}}}")
    model = ObservableModel(schema: schema)
    account = try ref("Account/1")
    try model.commit(Transaction([.create(account, ["balance": .number(100)])]))
  }

  @Test("The initial notification comes before observing returns, later ones after each commit")
  func telling() throws {
    var told: [String] = []
    let token = try model.observe(account, ["balance", "owner.balance"], options: [.initial, .old, .new]) { event in
      told += ["revision \(event.revision)"] + event.changes.map(line)
    }
    #expect(told == ["revision 1", "Account/1.balance new=100", "Account/1.owner.balance new=null"])
    told = []
    try model.set(account, forKeyPath: "balance", to: .integer(120))
    #expect(told == ["revision 2", "Account/1.balance old=100 new=120"])
    #expect(try model.value(of: account, forKeyPath: "balance") == .number(120))
    #expect(model.observationCount == 2)
    model.end(token)
    model.end(token)
    #expect(model.observationCount == 0)
    told = []
    try model.set(account, forKeyPath: "balance", to: .integer(1))
    #expect(told == [])
  }

  @Test("Without initial, observing tells nothing")
  func noInitial() throws {
    var count = 0
    _ = try model.observe(account, ["balance"], options: [.new]) { _ in count += 1 }
    #expect(count == 0)
  }

  @Test("Handlers are called in the order of registration, and may read and observe")
  func order() throws {
    var order: [String] = []
    for name in ["a", "b", "c", "d"] {
      _ = try model.observe(account, ["balance"], options: [.new], context: name) { [model, account] event in
        let value = try? model.value(of: account, forKeyPath: "balance")
        order.append("\(event.changes.first?.observation.context ?? "?")\(value?.json ?? "?")")
        _ = try? model.observe(account, ["owner"], options: []) { _ in }
      }
    }
    try model.set(account, forKeyPath: "balance", to: .integer(5))
    #expect(order == ["a5", "b5", "c5", "d5"])
    #expect(model.observationCount == 8)
  }

  @Test("Key paths that cannot be observed, read or set are refused, and nothing is registered or sent")
  func refusals() throws {
    var count = 0
    #expect(throws: ModelError.self) { try model.observe(account, ["balance", "nope"]) { _ in count += 1 } }
    #expect(throws: ModelError.self) { try model.observe(try ref("Account/2"), ["balance"]) { _ in count += 1 } }
    #expect(throws: ModelError.self) { try model.value(of: account, forKeyPath: "a..b") }
    _ = try model.observe(account, ["balance"], options: []) { _ in count += 1 }
    #expect(throws: ModelError.self) { try model.set(account, forKeyPath: "balance", to: .string("x")) }
    #expect((count, model.observationCount, model.revision) == (0, 1, 1))
  }
}
