import HTTPServer
import HTTPTypes
import Store
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// The bytes of a batch.
@Suite("Batches of writes on the wire") struct WriteBatchTests {
  private static func text(_ random: inout SplitMix64, _ letters: String) -> String {
    String((0..<Int.random(in: 1...40, using: &random)).compactMap { _ in letters.randomElement(using: &random) })
  }

  private static func fields(_ random: inout SplitMix64) -> [(name: String, value: String)] {
    (0..<Int.random(in: 0...6, using: &random)).map { _ in
      (text(&random, "abcDEF-_019"), text(&random, "abc \t\"é/€:;") + (Bool.random(using: &random) ? "" : "x"))
    }
  }

  private static func body(_ random: inout SplitMix64) -> [UInt8] {
    (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  private static func requests(_ random: inout SplitMix64) -> [NodeRequest] {
    (0..<Int.random(in: 0...5, using: &random)).map { _ in
      var request = NodeRequest(
        ["PUT", "POST", "PATCH", "DELETE", "BREW"].randomElement(using: &random) ?? "PUT",
        "/" + text(&random, "abc/%20?=&é"))
      request.fields = fields(&random)
      request.body = body(&random)
      return request
    }
  }

  private static func isSame(
    _ one: [(name: String, value: String)], _ other: [(name: String, value: String)], lowered: Bool
  ) -> Bool {
    one.map { lowered ? $0.name.lowercased() : $0.name } == other.map(\.name) && one.map(\.value) == other.map(\.value)
  }

  @Test("Requests are read back as they were, with the names of their fields in lower case")
  func requests() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let requests = Self.requests(&random)
      let bytes = WriteBatch.encoded(requests)
      #expect(bytes.count == requests.reduce(8) { $0 + WriteBatch.byteCount(of: $1) })
      let read = try WriteBatch.requests(in: bytes)
      #expect(read.count == requests.count, "seed \(seed)")
      for (sent, got) in zip(requests, read) {
        #expect(got.method.rawValue == sent.method && got.target == sent.target && got.body == sent.body)
        #expect(Self.isSame(sent.fields, got.fields, lowered: true), "seed \(seed)")
      }
    }
  }

  private static func handed(_ random: inout SplitMix64) -> HandedRecords? {
    let first = UInt64.random(in: 1...9_000, using: &random)
    let records = (0..<UInt64.random(in: 0...4, using: &random)).map { index in
      JournalRecord(
        revision: first + index, milliseconds: .random(in: .min ... .max, using: &random), body: body(&random))
    }
    return HandedRecords(
      records, digest: JournalDigest(value: .random(in: .min ... .max, using: &random)),
      pen: ["", "http://a:1"].randomElement(using: &random) ?? "")
  }

  @Test("Answers are read back as they were, with the records behind them, and as an older node sends them")
  func answers() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let answers = (0..<Int.random(in: 0...5, using: &random)).map { _ in
        NodeAnswer(
          status: Int.random(in: 200...599, using: &random), fields: Self.fields(&random), body: Self.body(&random))
      }
      let handed = Self.handed(&random)
      let bytes = WriteBatch.encoded(answers, handed)
      #expect(bytes.starts(with: Array((handed == nil ? "kwa1" : "kwa2").utf8)))
      let (read, records) = try WriteBatch.answers(in: bytes, count: answers.count)
      #expect(records == handed, "seed \(seed)")
      for (sent, got) in zip(answers, read) {
        #expect(got.status == sent.status && got.body == sent.body, "seed \(seed)")
        #expect(Self.isSame(sent.fields, got.fields, lowered: false), "seed \(seed)")
      }
      #expect(throws: WriteBatch.Defect.self) { try WriteBatch.answers(in: bytes, count: answers.count + 1) }
      for length in 0..<bytes.count {
        #expect(throws: WriteBatch.Defect.self, "seed \(seed), \(length)") {
          try WriteBatch.answers(in: Array(bytes[..<length]), count: answers.count)
        }
      }
    }
    let low = WriteBatch.encoded([NodeAnswer(status: 100, fields: [])])
    #expect(throws: WriteBatch.Defect.self) { try WriteBatch.answers(in: low, count: 1) }
  }

  @Test("Truncated or extended bytes are refused with the reason; changed bytes are a batch or are refused")
  func damage() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<30 {
      let bytes = WriteBatch.encoded(Self.requests(&random))
      for length in 0..<bytes.count {
        let defect = #expect(throws: WriteBatch.Defect.self, "seed \(seed), \(length)") {
          try WriteBatch.requests(in: Array(bytes[..<length]))
        }
        #expect(try #require(defect).description.contains("ends at byte \(length)"))
      }
      let longer = #expect(throws: WriteBatch.Defect.self) { try WriteBatch.requests(in: bytes + [0, 0]) }
      #expect(try #require(longer).description == "2 bytes follow the end of the batch")
      for _ in 0..<200 {
        var damaged = bytes
        let index = Int.random(in: 0..<bytes.count, using: &random)
        damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        do throws(WriteBatch.Defect) {
          for request in try WriteBatch.requests(in: damaged) {
            #expect(request.fields.allSatisfy { !$0.value.contains("\n") && !$0.name.isEmpty }, "seed \(seed)")
          }
        } catch {
          #expect(!error.description.isEmpty)
        }
      }
    }
  }

  @Test("Fields that a request cannot have are refused, with the number of the request")
  func strangers() throws {
    var good = NodeRequest("PUT", "/x")
    good.fields = [("A", "b")]
    func changed(_ change: (inout NodeRequest) -> Void) -> NodeRequest {
      var request = good
      change(&request)
      return request
    }
    for bad in [
      changed { $0.method = "P T" }, changed { $0.method = "" }, changed { $0.target = "x" },
      changed { $0.target = "/a b" }, changed { $0.target = "/a\r\nX: y" }, changed { $0.fields = [("", "b")] },
      changed { $0.fields = [("A b", "b")] }, changed { $0.fields = [("A", "b\r\nX: y")] },
      changed { $0.fields = [("A", "\0")] },
    ] {
      let defect = #expect(throws: WriteBatch.Defect.self) {
        try WriteBatch.requests(in: WriteBatch.encoded([good, bad]))
      }
      #expect(try #require(defect).description.contains("request 1 "))
    }
  }

  @Test("A batch has a limit of requests and of bytes")
  func limits() throws {
    let request = NodeRequest("PUT", "/x")
    let most = WriteBatch.encoded(Array(repeating: request, count: WriteBatch.mostRequests))
    #expect(try WriteBatch.requests(in: most).count == WriteBatch.mostRequests)
    let more = WriteBatch.encoded(Array(repeating: request, count: WriteBatch.mostRequests + 1))
    let defect = #expect(throws: WriteBatch.Defect.self) { try WriteBatch.requests(in: more) }
    #expect(try #require(defect).description.contains("\(WriteBatch.mostRequests) requests"))
    var large = request
    large.body = [UInt8](repeating: 0, count: WriteBatch.mostBytes)
    #expect(throws: WriteBatch.Defect.self) { try WriteBatch.requests(in: WriteBatch.encoded([large])) }
    // An impossible number of requests allocates no memory.
    #expect(throws: WriteBatch.Defect.self) { try WriteBatch.requests(in: Array("kww1".utf8) + [255, 255, 255, 255]) }
  }
}
