import Foundation
import TestKit

/// Starting programs in the checkout, without the settings that the environment of the tests has for `keyway`.
extension ChildProcess {
  /// Starts a program; `environment` is added to that of this process.
  static func start(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], folder: String = PackageFolder.root
  ) throws -> ChildProcess {
    guard FileManager.default.isExecutableFile(atPath: program) else {
      throw LoopbackError("\(program) is missing; see the test command of the README")
    }
    let variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("KEYWAY_") }
    return try ChildProcess(
      program, arguments, environment: variables.merging(environment) { _, given in given }, folder: folder)
  }

  /// Runs a program to its end.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    let child = try start(program, arguments, environment: environment)
    let status = try child.exitStatus()
    return (status, child.output, child.errors)
  }

  /// Runs `keyway` to its end.
  static func keyway(
    _ arguments: String..., environment: [String: String] = [:]
  ) throws -> (status: Int32, output: String, errors: String) {
    try run(PackageFolder.keyway, arguments, environment: environment)
  }

  /// The same for `keyway-bench`.
  static func keywayBench(_ arguments: String...) throws -> (status: Int32, output: String, errors: String) {
    try run(PackageFolder.keywayBench, arguments)
  }
}
