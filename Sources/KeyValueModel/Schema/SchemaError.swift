/// Everything that is wrong with a schema file. A schema with any mistake is refused as a whole.
public struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One mistake.
  public struct Problem: Hashable, Sendable {
    /// The line, counted from 1.
    public let line: Int
    /// The column, counted from 1.
    public let column: Int
    /// What is wrong, as a sentence.
    public let message: String
  }

  /// The mistakes in the order of the file; at least one.
  public let problems: [Problem]

  /// One mistake a line, as compilers print them: `schema.yaml:3:7: error: …`.
  public func rendered(file: String) -> String {
    problems.map { "\(file):\($0.line):\($0.column): error: \($0.message)" }.joined(separator: "\n")
  }

  /// The mistakes, for a file without a name.
  public var description: String { rendered(file: "schema") }
}
