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

    /// The problem in a line, as compilers print it: `schema.yaml:3:7: warning: …`.
    public func rendered(as kind: String, file: String) -> String {
      "\(file):\(line):\(column): \(kind): \(message)"
    }
  }

  /// The mistakes in the order of the file; at least one.
  public let problems: [Problem]

  /// One mistake a line, as compilers print them: `schema.yaml:3:7: error: …`.
  public func rendered(file: String) -> String {
    problems.map { $0.rendered(as: "error", file: file) }.joined(separator: "\n")
  }

  /// The mistakes, for a file without a name.
  public var description: String { rendered(file: "schema") }
}
