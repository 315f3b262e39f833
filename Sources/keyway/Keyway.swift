import ArgumentParser
import Glibc
import KeywayServer

/// The `keyway` command: a server of live objects, and a client for it.
@main struct Keyway: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyway",
    abstract: "Keeps model objects, serves them over REST, and sends every subscriber what changed.",
    version: "keyway \(Release.version)",
    subcommands: [
      InitCommand.self, ServeCommand.self, CheckCommand.self, StatusCommand.self, GetCommand.self, SetCommand.self,
      CreateCommand.self, PatchCommand.self, DeleteCommand.self, WatchCommand.self, ImportCommand.self,
      ExportCommand.self, StoreCommand.self, TokenCommand.self, SettingsCommand.self,
    ])

  /// The first steps, which `keyway` without arguments prints.
  private static let firstSteps = """
    Keyway stores objects, serves them over REST, and sends every subscriber what changed.

      keyway serve                      serves the example and a console on http://127.0.0.1:8080
      keyway watch Account/1 balance    shows each change of a value, in a second terminal
      keyway set Account/1 balance 5    changes it, in a third
      keyway init shop                  writes a schema and settings of your own into the folder shop
      cd shop && keyway serve           serves them

    keyway help lists all commands, and keyway help COMMAND describes one.

    """

  /// Prints the first steps.
  func run() { StandardOutput.text(Self.firstSteps) }

  /// Runs the command that the arguments name, and ends the program if it fails.
  static func main() async {
    do {
      try check(arguments: (1..<max(1, CommandLine.argc)).map { bytes(CommandLine.unsafeArgv[Int($0)]) })
      let command = try await asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        var command = command
        try command.run()
      }
    } catch {
      end(with: error)
    }
  }

  /// Throws a `ValidationError` for the first argument that is not UTF-8. A `String` would have U+FFFD in its place,
  /// which would then be stored.
  static func check(arguments: [[UInt8]]) throws(ValidationError) {
    for (index, bytes) in arguments.enumerated() {
      var parser = UTF8.ForwardParser()
      var rest = bytes.makeIterator()
      var offset = 0
      scalars: while true {
        switch parser.parseScalar(from: &rest) {
        case .valid(let scalar): offset += scalar.count
        case .emptyInput: break scalars
        case .error:
          let byte = String(bytes[offset], radix: 16, uppercase: true)
          throw ValidationError("argument \(index + 1) is not UTF-8: its byte \(offset + 1) is 0x\(byte)")
        }
      }
    }
  }

  private static func bytes(_ argument: UnsafeMutablePointer<CChar>?) -> [UInt8] {
    argument.map { Array(UnsafeBufferPointer(start: $0, count: strlen($0))).map(UInt8.init(bitPattern:)) } ?? []
  }

  /// Prints the text of an error, which may be the help, and ends the program with its status.
  private static func end(with error: any Error) -> Never {
    let wide = fullMessage(for: error, columns: HelpText.unlimitedColumns)
    // Only help depends on the width. A completion script, for example, does not.
    let isHelp = wide != fullMessage(for: error, columns: HelpText.fewestColumns)
    let text = isHelp ? HelpText.wrapped(wide, columns: TerminalSize.current.columns) : wide
    let code = exitCode(for: error)
    if !text.isEmpty { code.isSuccess ? StandardOutput.text(text) : StandardError.line(text) }
    Glibc.exit(code.rawValue)
  }
}

/// A failure that ends a command with status 1. Its text is written to standard error.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// The help of a command, broken into lines that fit a terminal.
///
/// swift-argument-parser breaks every line at the given width, even commands, which then cannot be copied. So it gets
/// no width, and the lines are broken here.
enum HelpText {
  /// A width that no line exceeds.
  fileprivate static let unlimitedColumns = 100_000
  /// The minimum width of the help.
  static let fewestColumns = 40
  /// The column where the descriptions of arguments begin.
  private static let descriptionColumn = 26

  /// Breaks the lines of a help text that was made without a width. The usage and paragraphs of examples are not
  /// broken.
  static func wrapped(_ help: String, columns: Int) -> String {
    let columns = max(columns, fewestColumns)
    let paragraphs = help.split(separator: "\n\n", omittingEmptySubsequences: false)
    return paragraphs.map { paragraph in
      let lines = paragraph.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.allSatisfy(isCommand) || paragraph.lowercased().hasPrefix("usage: ") { return String(paragraph) }
      let isList = lines.contains { $0.hasPrefix("  ") }
      let whole = isList ? lines : [Substring(lines.joined(separator: " "))]
      return whole.map { broken($0, columns: columns, indent: isList ? descriptionColumn : 0) }.joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  /// Returns true if the line is an example: a shell command.
  private static func isCommand(_ line: Substring) -> Bool { line.prefixMatch(of: #/(cd \S+ && )?keyway /#) != nil }

  /// Returns the line with breaks between words. Further lines are indented by `indent` spaces.
  private static func broken(_ line: Substring, columns: Int, indent: Int) -> String {
    guard line.count > columns else { return String(line) }
    var lines: [String] = []
    var current = String(line.prefix(indent))
    var isEmpty = true
    for word in line.dropFirst(indent).split(separator: " ") {
      if !isEmpty, current.count + 1 + word.count > columns {
        lines.append(current)
        current = String(repeating: " ", count: indent)
        isEmpty = true
      }
      current += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return (lines + [current]).joined(separator: "\n")
  }
}
