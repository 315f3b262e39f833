import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench crash")
struct CrashBenchTests {
  @Test("In twenty rounds of kills and drains, no promise is broken")
  func twentyRounds() throws {
    let bench = try ChildProcess.start(
      PackageFolder.keywayBench, ["crash", "--rounds", "20", "--seed", "\(seed)", "--json"])
    let status = try bench.exitStatus()
    #expect(status == 0, "seed \(seed): \(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["rounds"].whole == 20)
    #expect(figures["violations"].items.isEmpty)
    // The benchmark checked enough.
    #expect(figures["acknowledged"].whole ?? 0 >= 200)
    #expect(figures["events"].whole ?? 0 >= 200)
  }

  @Test("A server that forgets is found out: with an exit status, the seed, and what was expected")
  func forgetful() throws {
    let folder = try ScratchDirectory()
    // The store's files are removed between two runs of the server, with all acknowledged writes.
    let program = try folder.write(
      """
      #!/bin/sh
      rm -rf "\(folder.file("work"))/store"
      exec "\(PackageFolder.keyway)" "$@"
      """, to: "forgetful")
    chmod(program, 0o755)
    let bench = try ChildProcess.keywayBench(
      "crash", "--rounds", "3", "--seed", "7", "--directory", folder.file("work"), "--program", program)
    #expect(bench.status == 1)
    #expect(bench.output.contains("seed 7"))
    #expect(bench.output.contains("round 1: "))
    #expect(bench.output.contains("the epoch is"))
    #expect(bench.output.contains("was promised"))
  }
}
