import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("keyway-bench crash --nodes")
struct NodesCrashBenchTests {
  @Test(
    "In some rounds of kills, stops and cuts no promise of three nodes is broken", arguments: ["followers", "peers"])
  func rounds(kind: String) throws {
    let bench = try ChildProcess.start(
      PackageFolder.keywayBench,
      ["crash", "--nodes", "3", "--kind", kind, "--rounds", "4", "--seed", "\(seed)", "--json"])
    let status = try bench.exitStatus()
    #expect(status == 0, "seed \(seed): \(bench.errors)\n\(bench.output)")
    let figures = try Value(json: bench.output)
    #expect(figures["rounds"].whole == 4)
    #expect(figures["violations"].items.isEmpty)
    // The benchmark checked enough.
    #expect(figures["faults"].whole ?? 0 >= 4)
    #expect(figures["acknowledged"].whole ?? 0 >= 4)
    #expect(figures["refused"].whole ?? 0 >= 1)
    #expect(figures["reads"].whole ?? 0 >= 4)
    #expect(figures["events"].whole ?? 0 >= 4)
    #expect(figures["histories"].whole ?? 0 >= 4 && figures["undecided"].whole == 0)
  }

  @Test("Nodes that forget what they acknowledged are found out, with the seed and what had been done to them")
  func forgetful() throws {
    let folder = try ScratchDirectory()
    // The leader's store is removed at each of its starts.
    let program = try folder.write(
      """
      #!/bin/sh
      case "$*" in *"/work/store-0 "*) rm -rf "\(folder.file("work"))/store-0" ;; esac
      exec "\(PackageFolder.keyway)" "$@"
      """, to: "forgetful")
    chmod(program, 0o755)
    let bench = try ChildProcess.keywayBench(
      "crash", "--nodes", "2", "--kind", "followers", "--rounds", "9", "--seed", "3", "--directory",
      folder.file("work"), "--program", program)
    #expect(bench.status == 1)
    #expect(bench.output.contains("seed 3"))
    #expect(bench.output.contains("round "))
    #expect(bench.output.contains("the faults of the round: "))
    #expect(bench.output.contains("BROKEN"))
  }

  @Test("SIGTERM ends it, with a report of what it has done, and no node is left")
  func interruption() throws {
    let folder = try ScratchDirectory()
    let bench = try ChildProcess.start(
      PackageFolder.keywayBench,
      [
        "crash", "--nodes", "2", "--kind", "followers", "--rounds", "1000", "--seed", "\(seed)",
        "--directory", folder.file("work"),
      ])
    func nodes() -> Int {
      let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
      return processes.count { process in
        let line = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
        return String(decoding: line, as: UTF8.self).contains("\(folder.path)/work/store-")
      }
    }
    #expect(Deadline().awaits { nodes() == 2 })
    bench.send(SIGTERM)
    #expect(try bench.exitStatus() == 0, "seed \(seed): \(bench.errors)\n\(bench.output)")
    #expect(bench.output.contains("no promise was broken"))
    #expect(nodes() == 0)
  }

  @Test("The number of nodes must suit their kind")
  func options() throws {
    for arguments in [["--nodes", "3"], ["--kind", "peers"], ["--nodes", "1", "--kind", "peers"]] {
      let bench = try ChildProcess.run(PackageFolder.keywayBench, ["crash"] + arguments)
      #expect(bench.status == 64)
    }
  }
}
