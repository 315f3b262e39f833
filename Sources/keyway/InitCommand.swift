import ArgumentParser
import Foundation
import Glibc
import Store

/// Implements `keyway init`: writes the first files of a new server.
struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Writes a small schema and a configuration to start from.",
    discussion: """
      keyway init todo
      cd todo && keyway serve

      An existing file is never overwritten: the command then fails and writes nothing.
      """)

  @Argument(help: ArgumentHelp("The folder, which is created if it does not exist.", valueName: "dir"))
  var folder = "."

  func run() throws {
    let isHere = folder == "."
    let files = StarterFiles.all.map { (path: isHere ? $0.name : "\(folder)/\($0.name)", text: $0.text) }
    for file in files {
      var status = stat()
      if lstat(file.path, &status) == 0 { throw CommandFailure("\(file.path): already exists; nothing was written") }
    }
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure("\(folder): cannot be created: \(error.systemReason)")
    }
    for file in files { try NewFile.write(file.text, to: file.path) }
    let change = isHere ? "" : "cd \(folder) && "
    StandardOutput.text(
      """
      wrote \(files.map(\.path).joined(separator: " and "))
      start the server with: \(change)keyway serve
      """)
  }
}

/// Creates files that must not exist yet.
enum NewFile {
  /// Writes a file. With `isPrivate`, only its owner can read it. Throws a `CommandFailure` if the file exists, even if
  /// it was created just now.
  static func write(_ text: String, to path: String, isPrivate: Bool = false) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isPrivate ? 0o600 : 0o666)
    guard descriptor >= 0 else { throw CommandFailure("\(path): \(String(cString: strerror(errno)))") }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: Data(text.utf8))
  }
}

/// The files that `keyway init` writes.
private enum StarterFiles {
  /// The files with their names, in the order in which they are written.
  static let all = [(name: "schema.yaml", text: schema), (name: "keyway.yaml", text: configuration)]

  private static let schema = """
    # The objects of this server. `keyway check schema.yaml` reports each error with its line; while the server runs,
    # http://127.0.0.1:8080/ shows its objects.
    entities:
      List:
        keys:
          name: { type: string, optional: false, maxLength: 80 }
          # Both sides of a relationship stay consistent. The items are deleted with their list.
          items: { toMany: Item, ordered: true, inverse: list, delete: cascade }
          # Computed, and sent to subscribers, when an item is added, removed or done.
          open: { type: integer, computed: "size(items.filter(i, !i.done))" }
        display: [name, open]

      Item:
        keys:
          text: { type: string, optional: false, maxLength: 200 }
          done: { type: boolean, default: false, optional: false }
          due: { type: date }
          list: { toOne: List, inverse: items }

    """

  private static let configuration = """
    # The settings that differ from the defaults. `keyway serve` reads this file in the folder where it starts;
    # `--print-config` shows all settings and their origins. Paths are relative to that folder too.
    schema: schema.yaml
    store: keyway-data

    # The address. The server listens beyond this machine only with keys that verify tokens (access.keys).
    host: 127.0.0.1
    port: 8080

    # A folder of your own pages, beside /v1.
    # public: public

    """
}
