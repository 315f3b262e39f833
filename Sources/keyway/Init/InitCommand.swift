import ArgumentParser
import Foundation
import Glibc
import Store

/// `keyway init`: the files that a server of one's own begins with.
struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Writes a small schema and a configuration to start from.",
    discussion: """
      keyway init todo
      cd todo && keyway serve

      A file that is there already is never written over: then nothing is written, and the command fails.
      """)

  @Argument(help: ArgumentHelp("The folder; it is made where it is missing.", valueName: "dir"))
  var folder = "."

  func run() throws {
    let isHere = folder == "."
    let files = StarterFiles.all.map { (path: isHere ? $0.name : "\(folder)/\($0.name)", text: $0.text) }
    for file in files {
      var status = stat()
      if lstat(file.path, &status) == 0 { throw CommandFailure("\(file.path): is there already; nothing was written") }
    }
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure("\(folder): cannot be made: \(error.systemReason)")
    }
    for file in files { try Self.write(file.text, to: file.path) }
    let change = isHere ? "" : "cd \(folder) && "
    StandardOutput.text(
      """
      wrote \(files.map(\.path).joined(separator: " and "))
      start the server with: \(change)keyway serve
      """)
  }

  /// Writes a new file. One that has come into being meanwhile is not written over either.
  private static func write(_ text: String, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw CommandFailure("\(path): \(String(cString: strerror(errno)))") }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: Data(text.utf8))
  }
}
