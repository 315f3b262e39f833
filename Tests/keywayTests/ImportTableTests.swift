import ArgumentParser
import Foundation
import KeyValueModel
import Testing

@testable import keyway

/// A table of files, each with the objects that its import stores, or the errors that it reports.
///
/// A case runs the code of the command, from its arguments and the bytes of its file to the objects that it would send.
/// To add one, add a row.
@Suite("A table of files to import")
struct ImportTableTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var file: [UInt8]
    var arguments: [String]
    /// A line for each row: its id, if any, and its object; or the line of the file with the error there, and the hint
    /// after an arrow.
    var outcome: [String]

    /// Creates a case of a text file, and the options of its import as words; `_` in one is a space, `''` an empty one.
    init(_ name: String, _ text: String, _ options: String = "", _ outcome: String...) {
      self.init(name, bytes: Array(text.utf8), options, outcome)
    }

    init(_ name: String, bytes: [UInt8], _ options: String = "", _ outcome: [String]) {
      testDescription = name
      file = bytes
      arguments = options.split(separator: " ").map { $0 == "''" ? "" : String($0).replacing("_", with: " ") }
      self.outcome = outcome
    }
  }

  /// The properties of the entity of the objects in all files.
  private static let properties = #"""
    {
      "@ref": {"type": "string", "readOnly": true},
      "name": {"type": ["string", "null"]}, "note": {"type": ["string", "null"]},
      "count": {"type": ["integer", "null"]}, "price": {"type": ["number", "null"]},
      "open": {"type": ["boolean", "null"]}, "day": {"type": ["string", "null"], "keyway:type": "date"},
      "extra": {}, "owner": {"type": ["string", "null"], "keyway:toOne": "Item"},
      "parts": {"type": "array", "items": {"type": "string"}, "keyway:toMany": "Item"},
      "total": {"type": "number", "readOnly": true}
    }
    """#

  /// Imports a file. Returns the result in the form of `Case.outcome`.
  private static func outcome(of example: Case) throws -> [String] {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-table-\(UUID().uuidString)")
    try Data(example.file).write(to: path)
    defer { try? FileManager.default.removeItem(at: path) }
    let hasEntity = !example.arguments.contains("jsonl") || example.arguments.contains("--id")
    let entity = hasEntity ? ["--entity", "Item"] : []
    let command = try ImportCommand.parse([path.path] + entity + example.arguments)
    var lines: [String] = []
    func note(_ error: ImportError) {
      lines.append("\(error.line): \(error.reason)" + (error.hint.map { " → \($0)" } ?? ""))
    }
    do throws(any Error) {
      let input = try InputFile(path.path, encoding: command.encoding)
      let properties = try Value(json: properties)
      switch command.actualFormat {
      case .csv:
        var table = command.table(in: input)
        let header = try #require(try table.next())
        let plan = try command.plan(for: header, schema: ["properties": properties])
        while let record = try table.next() {
          do throws(ImportError) {
            let row = try InvalidCell.located(line: record.line) { () throws(InvalidCell) in try plan.row(record) }
            lines.append((row.id.map { "\($0) " } ?? "") + Value.object(row.object).json)
          } catch {
            note(error)
          }
        }
      case .jsonl:
        let document: Value = .object(["$defs": .object(["Item": .object(["properties": properties])])])
        let reader = command.lineReader(try #require(ImportSchema(document: document)))
        var file = LineFile(input)
        while let line = try file.next() {
          do throws(ImportError) {
            let row = try InvalidCell.located(line: line.number) { () throws(InvalidCell) in try reader.object(line) }
            lines.append("\(row.reference.id) \(Value.object(Self.object(of: row)).json)")
          } catch {
            note(error)
          }
        }
      }
    } catch let error as ImportError {
      note(error)
    }
    return lines
  }

  /// Returns the keys that a line sets, relationships last.
  private static func object(of row: ObjectLine) -> JSONObject {
    var object = row.values
    object.members.merge(row.documents.members) { value, _ in value }
    for link in row.links { object[link.key] = link.value }
    return object
  }

  @Test("is stored or refused as it says", arguments: encodings + columns + dialects + values + dates + jsonLines)
  func row(_ example: Case) throws {
    let outcome = try Self.outcome(of: example)
    #expect(outcome == example.outcome)
  }

  // MARK: Shared by the parts of the table

  /// The keys of the entity, as an error lists them.
  static let keys = "name, note, count, price, open, day, extra, owner, parts, total"

  /// Returns the hint for a text that often means no value.
  static func null(_ text: String) -> String { "--null '\(text)' treats such fields as empty" }

  /// Makes a case of one column of a key.
  static func values(_ key: String, _ name: String, _ options: String, _ values: (String, String)...) -> Case {
    let rows = values.map { "\"\($0.0.replacing("\"", with: "\"\""))\",\n" }
    let outcome = values.enumerated().map { index, value in
      value.1.hasPrefix("is ")
        ? "\(index + 2): \(key) \(value.1)" : value.1.isEmpty ? "{}" : #"{"\#(key)":\#(value.1)}"#
    }
    return Case("\(key): \(name)", bytes: Array("\(key),\n\(rows.joined())".utf8), options, outcome)
  }
}
