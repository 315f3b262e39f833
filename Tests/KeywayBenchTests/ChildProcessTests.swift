import Foundation
import Glibc
import TestKit
import Testing

@Suite("Child processes") struct ChildProcessTests {
  private func shell(
    _ command: String, environment: [String: String]? = nil, folder: String? = nil
  ) throws -> ChildProcess {
    try ChildProcess("/bin/sh", ["-c", command], environment: environment, folder: folder)
  }

  @Test func hasTheStatusThatTheProgramEndedWith() throws {
    #expect(try shell("exit 3").exitStatus() == 3)
    #expect(try shell("kill -9 $$").exitStatus() == 128 + SIGKILL)
  }

  @Test func getsItsFolderAndItsEnvironment() throws {
    let child = try shell("pwd; echo $KEY", environment: ["KEY": "a=b c"], folder: "/usr")
    #expect(try child.lines(2) == ["/usr", "a=b c"])
  }

  @Test func keepsTheTwoOutputsApart() throws {
    let child = try shell("echo out; echo err >&2")
    #expect(try child.exitStatus() == 0)
    #expect((child.output, child.errors) == ("out\n", "err\n"))
  }

  /// Opens more descriptors than one getdents64(2) reads of `/dev/fd`.
  @Test func inheritsNoDescriptorAndNoBlockedSignal() async throws {
    let descriptors = (0..<2000).map { _ in open("/dev/null", O_RDONLY) }
    defer { for descriptor in descriptors { close(descriptor) } }
    try #require(descriptors.allSatisfy { $0 >= 0 })
    // On a thread of Dispatch, which blocks signals.
    let lines = try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(
          with: Result {
            try shell("echo /proc/$$/fd/*; exec grep SigBlk /proc/self/status").lines(2)
          })
      }
    }
    let names = lines[0].split(separator: " ").compactMap { $0.split(separator: "/").last }
    // The shell may open one more to read the folder.
    #expect(names.count <= 4 && names.prefix(3) == ["0", "1", "2"])
    #expect(lines[1].hasSuffix("\t0000000000000000"))
  }

  @Test func saysWhichProgramIsMissing() {
    #expect(throws: LoopbackError.self) { try ChildProcess("/no/such/program", []) }
  }

  @Test func endsWithItsObject() throws {
    var child: ChildProcess? = try shell("echo begun; trap '' TERM; sleep 0.2; exec sleep 100")
    let pid = try #require(child).pid
    _ = try child?.lines(1)
    child?.send(SIGKILL)
    child = nil
    #expect(kill(pid, 0) == -1)
  }
}
