/// The objects of a crash test of several nodes: registers, and one group of all of them whose sum every write moves.
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

  /// Registers that every client writes and that are never deleted.
  static let steady = ["s0", "s1"]
  /// Registers that every client writes, makes and deletes.
  static let fleeting = ["v0", "v1"]
  /// The value of the steady registers at the beginning.
  static let firstValue = 0

  /// The register that one writer alone writes.
  static func own(_ writer: Int) -> String { "w\(writer)" }

  /// All of them.
  static func registers(writers: Int) -> [String] { steady + fleeting + (0..<writers).map(own) }

  /// A register as the body of a request has it.
  static func object(_ value: Int) -> String { #"{"value":\#(value),"group":"Group/all"}"# }

  /// The operations that make the group and the steady registers.
  static var founding: [String] {
    [#"{"op":"create","object":"Group/all","value":{}}"#]
      + steady.map { #"{"op":"create","object":"Register/\#($0)","value":\#(object(firstValue))}"# }
  }
}
