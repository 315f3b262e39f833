import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("A disk that is full, and one that is read-only")
struct FullDiskTests {
  /// A file system in memory that lives as long as this object.
  private final class SmallDisk {
    private let folder: ScratchDirectory
    var path: String { folder.path }

    init(kilobytes: Int) throws {
      folder = try ScratchDirectory()
      try Self.mount("-t", "tmpfs", "-o", "size=\(kilobytes)k", "tmpfs", folder.path)
    }

    deinit { _ = try? ChildProcess.run("/usr/bin/umount", ["-l", folder.path]) }

    func remount(_ option: String) throws { try Self.mount("-o", "remount,\(option)", folder.path) }

    private static func mount(_ arguments: String...) throws {
      let result = try ChildProcess.run("/usr/bin/mount", arguments)
      guard result.status == 0 else { throw LoopbackError("mount \(arguments): \(result.errors)") }
    }

    /// True if file systems can be mounted here: that takes a superuser, which not every container has.
    static let isPossible = (try? SmallDisk(kilobytes: 64)) != nil
  }

  private static let schema = "entities:\n  Note:\n    keys:\n      text: { type: string }\n"

  /// Puts a note whose length soon fills the disk.
  private func put(_ number: Int, _ server: DurableServer) throws -> WireResponse {
    let text = "\(number)" + String(repeating: "x", count: 20_000)
    return try server.client.send("PUT", "/v1/objects/Note/\(number)", body: #"{"text":"\#(text)"}"#)
  }

  @Test(
    "A full disk refuses writes and nothing else, until there is room again; nothing acknowledged is lost",
    .enabled(if: SmallDisk.isPossible, "file systems cannot be mounted here"))
  func full() throws {
    let folder = try ScratchDirectory()
    let disk = try SmallDisk(kilobytes: 6000)
    let ballast = disk.path + "/ballast"
    try Data(repeating: 1, count: 3 << 20).write(to: URL(fileURLWithPath: ballast))
    let server = try DurableServer(
      schema: folder.write(Self.schema, to: "schema.yaml"), store: disk.path + "/store",
      // Each snapshot needs additional space.
      settings: ["heartbeat.seconds": "1", "snapshot.revisions": "20"])
    var count = 0
    var refusal: WireResponse?
    while refusal == nil, count < 1000 {
      let answer = try put(count, server)
      if answer.status == 201 { count += 1 } else { refusal = answer }
    }
    // From now on the server cannot free space by itself.
    let filling = disk.path + "/filling"
    _ = FileManager.default.createFile(atPath: filling, contents: nil)
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: filling))
    while (try? file.write(contentsOf: Data(repeating: 2, count: 4096))) != nil {}
    try file.close()
    refusal = nil
    while refusal == nil, count < 1000 {
      let answer = try put(count, server)
      if answer.status == 201 { count += 1 } else { refusal = answer }
    }
    #expect(refusal?.status == 503)
    #expect(refusal?.problem == "store-unavailable")
    #expect(refusal?["Retry-After"] != nil)
    #expect(refusal?.text.contains(disk.path) == false, "\(refusal?.text ?? "")")
    let ready = try server.client.send("GET", "/readyz")
    #expect(ready.status == 503 && ready.problem == "store-unavailable" && !ready.text.contains(disk.path))
    let lines = { (text: String) in server.process.child.errors.components(separatedBy: text).count - 1 }
    #expect(Deadline().awaits { lines("the store takes no writes") % 2 == 1 })
    let begun = lines("the store takes no writes")
    for _ in 0..<3 { #expect(try put(count, server).status == 503) }
    #expect(begun == lines("the store takes no writes") && begun == 2 * lines("ended: the store takes no writes") + 1)
    #expect(server.process.child.errors.contains("detail=\"\(disk.path)/store/"))
    #expect(try server.revision == count)
    #expect(try server.client.send("GET", "/v1/objects/Note/0").status == 200)
    let stream = try server.client.stream("/v1/objects/Note/0/text?options=initial")
    #expect(try stream.next().json["revision"].whole == count)
    // The same after an end on a full disk.
    try server.restart()
    #expect(try server.revision == count)
    for path in [ballast, filling] { try FileManager.default.removeItem(atPath: path) }
    let resumes = try Deadline().awaits { try put(count, server).status == 201 }
    #expect(resumes)
    try server.restart()
    #expect(try server.revision == count + 1)
    for number in 0...count {
      let text = try server.client.json("/v1/objects/Note/\(number)/text").text
      #expect(text?.hasPrefix("\(number)x") == true)
    }
  }

  @Test(
    "A store on a read-only disk is refused with its name, and is as it was when the disk can be written again",
    .enabled(if: SmallDisk.isPossible, "file systems cannot be mounted here"))
  func readOnly() throws {
    let folder = try ScratchDirectory()
    let disk = try SmallDisk(kilobytes: 6000)
    let schema = try folder.write(Self.schema, to: "schema.yaml")
    let server = try DurableServer(schema: schema, store: disk.path + "/store")
    for number in 0..<5 { #expect(try put(number, server).status == 201) }
    try server.end(SIGKILL)
    try disk.remount("ro")
    let refused = try ChildProcess.keyway("serve", "--port", "0", "--schema", schema, "--store", server.store)
    #expect(refused.status != 0)
    #expect(refused.errors.contains(server.store), "\(refused.errors)")
    try disk.remount("rw")
    try server.start()
    #expect(try server.revision == 5)
    #expect(try put(5, server).status == 201)
  }
}
