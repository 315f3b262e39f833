import TestKit

extension RegisterRequest {
  /// A request of one writer, with a value of its own and, where it has one, a key of its own; `versions` are those of
  /// the registers that the writer has seen.
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

  /// A request that has to be refused in any state: what it asks to be made is always there. That a node can say at
  /// once, but it must not say it by a state that is older than the request.
  static func refused(value: Int, using random: inout SplitMix64) -> RegisterRequest {
    create(RegisterSchema.steady.randomElement(using: &random) ?? "s0", value)
  }
}
