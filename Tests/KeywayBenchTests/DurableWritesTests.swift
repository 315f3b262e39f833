import Foundation
import KeyValueModel
import TestKit
import Testing

@testable import keyway_bench

@Suite("The benchmark of durable writes")
struct DurableWritesTests {
  private static func peer(_ kind: WritePeer.Kind) throws -> WritePeer {
    WritePeer(kind: kind, address: try SocketAddress(server: "http://127.0.0.1:9"), keys: 3, sizeBytes: 100)
  }

  /// Returns the body of a request, and its `Content-Length`.
  private static func body(_ request: NumberedRequest) -> (text: Substring, length: Int?) {
    let text = String(decoding: request.bytes, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n") else { return ("", nil) }
    let length = text.firstMatch(of: /Content-Length: ([0-9]+)\r\n/).flatMap { Int($0.1) }
    return (text[end.upperBound...], length)
  }

  @Test("A request is as long with any number in it", arguments: WritePeer.Kind.allCases)
  func numbers(kind: WritePeer.Kind) throws {
    for var request in try Self.peer(kind).writes {
      let length = request.bytes.count
      #expect(!Self.body(request).text.contains("?"))
      var seen: Set<[UInt8]> = []
      for number: UInt64 in [0, 7, 123_456_789_012, .max] {
        request.set(number)
        #expect(request.bytes.count == length)
        let (text, told) = Self.body(request)
        #expect(told == text.utf8.count)
        seen.insert(request.bytes)
      }
      #expect(seen.count == 4)
    }
  }

  @Test("Every server is given a value of the same length, and a key of its own for each key")
  func values() throws {
    for var request in try Self.peer(.keyway).writes {
      request.set(1)
      guard case .string(let text) = try Value(json: String(Self.body(request).text)) else {
        Issue.record("no string")
        continue
      }
      #expect(text.utf8.count == 100)
    }
    for var request in try Self.peer(.etcd).writes {
      request.set(42)
      guard case .object(let put) = try Value(json: String(Self.body(request).text)),
        case .string(let key)? = put["key"], case .string(let value)? = put["value"]
      else {
        Issue.record("no key or no value")
        continue
      }
      #expect(Data(base64Encoded: key)?.starts(with: Data("bench/".utf8)) == true)
      #expect(Data(base64Encoded: value)?.count == 100)
    }
    for var request in try Self.peer(.webdis).writes {
      request.set(42)
      #expect(Self.body(request).text.hasPrefix("000000000042xxx"))
      #expect(Self.body(request).length == 100)
    }
    for kind in WritePeer.Kind.allCases { #expect(Set(try Self.peer(kind).writes).count == 3) }
  }

  @Test("A request without a place for a number never changes")
  func unnumbered() {
    var request = NumberedRequest("GET / HTTP/1.1\r\n\r\n")
    let before = request
    request.set(5)
    #expect(request == before)
  }

  @Test("The busy time of all cores is read from /proc/stat without idling and waiting")
  func machineLoad() throws {
    let text = "cpu  100 20 30 99999 5000 4 6 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    #expect(MachineLoad(stat: text, ticksPerSecond: 100)?.busySeconds == 1.6)
    #expect(MachineLoad(stat: "intr 1 2 3 4 5 6 7 8", ticksPerSecond: 100) == nil)
    #expect(try MachineLoad.now().busySeconds > 0)
  }

  private static func round(keyway: Double, etcd: Double, reads: (alone: Double, both: Double)?) -> DurableReport.Round
  {
    func load(_ perSecond: Double) -> DurableReport.Load {
      var load = DurableReport.Load()
      load.perSecond = perSecond
      return load
    }
    var round = DurableReport.Round()
    for connections in [1, 64] {
      round.writes[.init(peer: .keyway, connections: connections)] = load(keyway)
      round.writes[.init(peer: .etcd, connections: connections)] = load(etcd)
    }
    round.readsAlone = reads.map { load($0.alone) }
    round.readsWhileWriting = reads.map { load($0.both) }
    return round
  }

  @Test("The report has the median of the rounds' ratios, and leaves out what was not measured")
  func report() throws {
    var report = DurableReport(connections: 64, readers: 64, writers: 8, skipped: ["webdis"])
    report.rounds = [
      Self.round(keyway: 300, etcd: 100, reads: (1000, 700)), Self.round(keyway: 200, etcd: 100, reads: (1000, 900)),
      Self.round(keyway: 800, etcd: 100, reads: (1000, 800)),
    ]
    #expect(report.ratios.map(\.name) == ["etcdRatio64", "etcdRatio1", "readRatio"])
    #expect(report.ratios.map { $0.values.median } == [3, 3, 0.8])
    #expect(report.text.contains("webdis: not installed, skipped"))
    #expect(report.text.contains("keyway / etcd, 64 connections: 3.00 (3.00 2.00 8.00)"))
    #expect(report.text.contains("keyway, 1 connection: 300/s (300 200 800)"))
    guard case .object(let object) = report.json, case .object(let ratio)? = object["readRatio"] else {
      Issue.record("no object")
      return
    }
    #expect(ratio["median"] == .number(0.8))
    #expect(ratio["rounds"] == .array([.number(0.7), .number(0.9), .number(0.8)]))
    #expect(object["webdisRatio64"] == nil)
    report.rounds = []
    #expect(report.series.isEmpty && report.ratios.isEmpty)
  }

  @Test("Programs are found where they are installed")
  func programs() {
    #expect(ChildProcess.find("sh")?.hasSuffix("/sh") == true)
    #expect(ChildProcess.find("there-is-no-such-program") == nil)
  }

  @Test("The disk is measured in a directory that is left as it was, and a scratch directory goes with what is in it")
  func directories() throws {
    let parent = FileManager.default.temporaryDirectory.path
    let directory = try ScratchDirectory(in: parent)
    let probe = try DiskProbe(directory: directory.path, seconds: 0.02)
    #expect(probe.append.max > 0 && probe.overwrite.max > 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    _ = try directory.write("text", to: "a")
    _ = try directory.directory("b")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["a", "b"])
    directory.remove()
    #expect(!FileManager.default.fileExists(atPath: directory.path))
    #expect(throws: LoopbackError.self) { _ = try ScratchDirectory(in: parent + "/there-is-none") }
  }
}
