import TestKit

/// A request that writes registers, and what each possible answer says about them.
struct RegisterRequest: Sendable {
  /// The part of the request that concerns one register.
  struct Part: Hashable, Sendable {
    var register: String
    /// The condition on the register for the request to succeed.
    var condition: RegisterOperation.Condition
    /// The register after it.
    var leaves: Int?
    /// The conditions that held on the register after a success, by status, if that says more.
    var successes: [Int: RegisterOperation.Condition] = [:]
    /// The conditions that justify a refusal, by status; any other refusal is wrong.
    var refusals: [Int: RegisterOperation.Condition] = [:]
  }

  /// The version of a register that a client has seen.
  struct Version: Hashable, Sendable {
    var value: Int
    var cursor: Cursor

    /// The entity tag for `If-Match`.
    var tag: String { "\"\(cursor)\"" }
  }

  var parts: [Part]
  var request: WireRequest
  /// The value that it sets, which is unique to this request; nil for a deletion.
  var value: Int?

  /// True if it has an `Idempotency-Key`, and so may be repeated until there is an answer.
  var isRepeatable: Bool { request.headers["Idempotency-Key"] != nil }

  /// Returns the part that a refusal concerns: the one that it names, or the first.
  func part(refusedBy response: WireResponse) -> Part? {
    parts.first { "Register/\($0.register)" == response.json["object"].text } ?? parts.first
  }

  /// Returns the condition of a part after a success.
  func condition(of part: Part, after status: Int) -> RegisterOperation.Condition {
    part.successes[status] ?? part.condition
  }

  // MARK: Kinds of requests

  /// Creates or replaces a register unconditionally.
  private static func put(_ register: String, _ value: Int) -> RegisterRequest {
    single(
      Part(
        register: register, condition: .always, leaves: value, successes: [200: .isPresent, 201: .isState(nil)]),
      "PUT", body: RegisterSchema.object(value))
  }

  /// Creates a register if it is absent.
  private static func create(_ register: String, _ value: Int) -> RegisterRequest {
    single(
      Part(register: register, condition: .isState(nil), leaves: value, refusals: [412: .isPresent]),
      "PUT", ["If-None-Match": "*"], body: RegisterSchema.object(value))
  }

  /// Replaces a register that still has a version.
  private static func replace(_ register: String, _ version: Version, _ value: Int) -> RegisterRequest {
    single(
      Part(
        register: register, condition: .isState(version.value), leaves: value,
        refusals: [412: .isNot(version.value)]),
      "PUT", ["If-Match": version.tag], body: RegisterSchema.object(value))
  }

  /// Sets the value of an existing register, and perhaps requires a version.
  private static func set(_ register: String, _ version: Version?, _ value: Int) -> RegisterRequest {
    single(
      Part(
        register: register, condition: version.map { .isState($0.value) } ?? .isPresent, leaves: value,
        refusals: refusals(version)),
      "PUT", version.map { ["If-Match": $0.tag] } ?? [:], path: "/value", body: "\(value)")
  }

  /// Deletes an existing register, and perhaps requires a version.
  private static func delete(_ register: String, _ version: Version?) -> RegisterRequest {
    single(
      Part(
        register: register, condition: version.map { .isState($0.value) } ?? .isPresent, leaves: nil,
        refusals: refusals(version, ofAbsent: true)),
      "DELETE", version.map { ["If-Match": $0.tag] } ?? [:])
  }

  /// Sets registers to one value in one transaction, and perhaps requires a version of the first. It may be repeated.
  static func transact(_ registers: [String], _ version: Version?, _ value: Int, key: String) -> RegisterRequest {
    var operations = registers.map { #"{"op":"set","object":"Register/\#($0)","keyPath":"value","value":\#(value)}"# }
    if let version, let first = registers.first {
      operations.insert(
        #"{"op":"require","object":"Register/\#(first)","revision":\#(version.cursor.revision)}"#, at: 0)
    }
    let parts = registers.enumerated().map { index, register in
      let required = index == 0 ? version : nil
      return Part(
        register: register, condition: required.map { .isState($0.value) } ?? .isPresent, leaves: value,
        refusals: refusals(required, ofAbsent: true))
    }
    return transaction(parts, operations, value, key: key)
  }

  /// Creates a register in a transaction if it is absent. It may be repeated.
  private static func found(_ register: String, _ value: Int, key: String) -> RegisterRequest {
    transaction(
      [Part(register: register, condition: .isState(nil), leaves: value, refusals: [409: .isPresent])],
      [#"{"op":"create","object":"Register/\#(register)","value":\#(RegisterSchema.object(value))}"#], value, key: key)
  }

  /// Returns the conditions that justify the refusal of a change to an existing register, by status. For an absent
  /// register, the refusal may state that it does not exist, or (with `ofAbsent`) that it no longer has the version.
  private static func refusals(
    _ version: Version?, ofAbsent: Bool = false
  ) -> [Int: RegisterOperation.Condition] {
    guard let version else { return [404: .isState(nil)] }
    return [404: .isState(nil), 412: ofAbsent ? .isNot(version.value) : .isOther(version.value)]
  }

  private static func single(
    _ part: Part, _ method: String, _ headers: [String: String] = [:], path: String = "", body: String? = nil
  ) -> RegisterRequest {
    RegisterRequest(
      parts: [part], request: WireRequest(method, "/v1/objects/Register/\(part.register)\(path)", headers, body: body),
      value: part.leaves)
  }

  static func transaction(_ parts: [Part], _ operations: [String], _ value: Int?, key: String) -> RegisterRequest {
    RegisterRequest(
      parts: parts, request: .transaction(operations, ["Idempotency-Key": key]), value: value)
  }
}

// MARK: Random requests

extension RegisterRequest {
  /// Returns a random request of one writer, with a unique value and, if it has one, a unique key; `versions` are the
  /// versions of the registers that the writer has seen.
  static func random(
    writer: Int, versions: [String: Version], value: Int, using random: inout SplitMix64
  ) -> RegisterRequest {
    let own = RegisterSchema.own(writer)
    let register = (RegisterSchema.steady + RegisterSchema.fleeting + [own]).randomElement(using: &random) ?? own
    let version = versions[register]
    let isSteady = RegisterSchema.steady.contains(register)
    let key = "writer-\(writer)-\(value)"
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<15: return put(register, value)
    case 15..<25: return create(register, value)
    case 25..<35: return set(register, nil, value)
    case 35..<45:
      guard let version else { return put(register, value) }
      return replace(register, version, value)
    case 45..<55: return set(register, version, value)
    case 55..<70 where !isSteady: return delete(register, random.chance(50) ? version : nil)
    case 70..<80 where !isSteady: return found(register, value, key: key)
    default:
      let other = RegisterSchema.steady.filter { $0 != register }.randomElement(using: &random)
      let registers = [register] + (random.chance(50) ? [other].compactMap { $0 } : [])
      return transact(registers, random.chance(50) ? version : nil, value, key: key)
    }
  }

  /// Returns a request that has to be refused in any state: it creates an object that always exists. A node may refuse
  /// it at once, but not on the basis of a state that is older than the request.
  static func refused(value: Int, using random: inout SplitMix64) -> RegisterRequest {
    create(RegisterSchema.steady.randomElement(using: &random) ?? "s0", value)
  }
}

/// The objects of a crash test of several nodes: registers, and one group of all of them whose sum changes with every
/// write.
enum RegisterSchema {
  static let yaml = """
    entities:
      Register:
        keys:
          value: { type: integer }
          group: { toOne: Group, inverse: registers }
        display: [value]
      Group:
        keys:
          registers: { toMany: Register, inverse: group }
          total: { type: integer, computed: registers.@sum.value }
        display: [total]

    """

  /// The registers that every client writes and that are never deleted.
  static let steady = ["s0", "s1"]
  /// The registers that every client writes, creates and deletes.
  static let fleeting = ["v0", "v1"]
  /// The initial value of the steady registers.
  static let firstValue = 0

  /// Returns the register that only one writer writes.
  fileprivate static func own(_ writer: Int) -> String { "w\(writer)" }

  /// Returns all registers.
  static func registers(writers: Int) -> [String] { steady + fleeting + (0..<writers).map(own) }

  /// Returns a register as the body of a request.
  static func object(_ value: Int) -> String { #"{"value":\#(value),"group":"Group/all"}"# }

  /// The operations that create the group and the steady registers.
  static var founding: [String] {
    [#"{"op":"create","object":"Group/all","value":{}}"#]
      + steady.map { #"{"op":"create","object":"Register/\#($0)","value":\#(object(firstValue))}"# }
  }
}
