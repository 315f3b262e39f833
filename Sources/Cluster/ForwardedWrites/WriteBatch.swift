import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store

/// Writes on their way to another node, several in one request, and the answers to them: `POST /v1/nodes/writes`.
///
/// Four bytes that name the form, and a number of requests (4 bytes); of each its method, its target, the number of its
/// fields (2), of each field its name and its value, and its body. Answers are the same with other bytes for the form,
/// and a status (2) in the place of method and target; behind them may stand the records that the sender lacks, under
/// another form. A text is its length (4) and so many bytes of UTF-8, a body its
/// length (4) and the bytes. Numbers are little-endian.
enum WriteBatch {
  /// What bytes are in the place of a batch.
  struct Defect: Error, Hashable, CustomStringConvertible {
    let description: String
  }

  /// Where a batch is sent.
  static let target = "/v1/nodes/writes"
  /// What it is of.
  static let mediaType = "application/octet-stream"
  /// The most requests in one. The thread of a connection judges all of them before it turns to others.
  static let mostRequests = 128
  /// The most bytes of one.
  static let mostBytes = 512 << 10
  /// A request that has more bytes goes alone.
  static let mostRequestBytes = 8 << 10
  /// The most bytes of the bodies of the answers. What a write has done is answered without a body beyond.
  static let mostAnswerBytes = 16 << 20
  /// The most bytes of the bodies of the records that go with the answers; the sender reads the rest itself.
  static let mostRecordBytes = 256 << 10
  /// The most bytes that an answer has besides its body.
  static let answerHeadBytes = 64 << 10

  private static let requestForm = Array("kww1".utf8)
  private static let answerForm = Array("kwa1".utf8)
  /// The form of answers with records behind them: where their node is reached that appended last, the revision before
  /// the first (8 bytes), the digest at the last (8), their number (4), and of each its milliseconds (8) and its body.
  /// It is sent to those alone that ask for records.
  private static let recordsForm = Array("kwa2".utf8)
  /// What a request or an answer takes at least.
  private static let leastBytes = 8

  // MARK: Requests

  /// How many bytes a request takes.
  static func byteCount(of request: NodeRequest) -> Int {
    request.fields.reduce(14 + request.method.utf8.count + request.target.utf8.count + request.body.count) {
      $0 + 8 + $1.name.utf8.count + $1.value.utf8.count
    }
  }

  /// The bytes of a batch of requests.
  static func encoded(_ requests: [NodeRequest]) -> [UInt8] {
    var bytes = requestForm
    bytes.reserveCapacity(requests.reduce(8) { $0 + byteCount(of: $1) })
    bytes.append(number: UInt32(requests.count))
    for request in requests {
      bytes.append(text: request.method)
      bytes.append(text: request.target)
      bytes.append(fields: request.fields)
      bytes.append(content: request.body)
    }
    return bytes
  }

  /// The requests that bytes are.
  static func requests(in bytes: [UInt8]) throws(Defect) -> [CarriedMessage] {
    guard bytes.count <= mostBytes else { throw Defect(description: "a batch has at most \(mostBytes) bytes") }
    var reader = Reader(bytes: bytes)
    let count = try reader.count(requestForm)
    guard count <= mostRequests else { throw Defect(description: "a batch has at most \(mostRequests) requests") }
    var requests: [CarriedMessage] = []
    requests.reserveCapacity(count)
    for index in 0..<count {
      let (method, target) = (try reader.text(), try reader.text())
      let fields = try reader.fields()
      let body = try reader.content()
      guard let request = CarriedMessage(method: method, target: target, fields: fields, body: body) else {
        throw Defect(description: "request \(index) has a method, a target or a field that no request has")
      }
      requests.append(request)
    }
    try reader.end()
    return requests
  }

  // MARK: Answers

  /// The bytes of the answers to a batch, with the records that go with them.
  static func encoded(_ answers: [NodeAnswer], _ handed: HandedRecords? = nil) -> [UInt8] {
    var bytes = handed == nil ? answerForm : recordsForm
    bytes.append(number: UInt32(answers.count))
    for answer in answers {
      bytes.append(number: UInt16(answer.status))
      bytes.append(fields: answer.fields)
      bytes.append(content: answer.body)
    }
    if let handed { append(handed, to: &bytes) }
    return bytes
  }

  private static func append(_ handed: HandedRecords, to bytes: inout [UInt8]) {
    bytes.append(text: handed.pen)
    bytes.append(number: (handed.records.first?.revision ?? 1) - 1)
    bytes.append(number: handed.digest.value)
    bytes.append(number: UInt32(handed.records.count))
    for record in handed.records {
      bytes.append(number: record.milliseconds)
      bytes.append(content: record.body)
    }
  }

  /// The answers that bytes are, which must be so many, and the records that stand behind them.
  static func answers(
    in bytes: [UInt8], count expected: Int
  ) throws(Defect) -> (answers: [NodeAnswer], handed: HandedRecords?) {
    var reader = Reader(bytes: bytes)
    let hasRecords = bytes.starts(with: recordsForm)
    let count = try reader.count(hasRecords ? recordsForm : answerForm)
    guard count == expected else { throw Defect(description: "there are \(count) answers to \(expected) requests") }
    var answers: [NodeAnswer] = []
    for _ in 0..<count {
      let status: UInt16 = try reader.number()
      guard (200...599).contains(status) else { throw Defect(description: "\(status) is the status of no answer") }
      let fields = try reader.fields()
      answers.append(NodeAnswer(status: Int(status), fields: fields, body: try reader.content()))
    }
    let handed = hasRecords ? try reader.handed() : nil
    try reader.end()
    return (answers, handed)
  }

  private struct Reader {
    let bytes: [UInt8]
    var position = 0

    mutating func count(_ form: [UInt8]) throws(Defect) -> Int {
      guard try take(4) == form[...] else { throw Defect(description: "this is no batch of this version") }
      let count: UInt32 = try number()
      guard Int(count) <= (bytes.count - position) / leastBytes else { throw missing }
      return Int(count)
    }

    mutating func number<Number: FixedWidthInteger & BitwiseCopyable>() throws(Defect) -> Number {
      let place = position
      _ = try take(Number.bitWidth / 8)
      return Number(
        littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: Number.self) })
    }

    mutating func text() throws(Defect) -> String {
      let length: UInt32 = try number()
      let place = position
      guard let text = String(validating: try take(Int(length)), as: UTF8.self) else {
        throw Defect(description: "the text at byte \(place) is not UTF-8")
      }
      return text
    }

    mutating func fields() throws(Defect) -> [(name: String, value: String)] {
      let count: UInt16 = try number()
      guard Int(count) <= (bytes.count - position) / leastBytes else { throw missing }
      var fields: [(name: String, value: String)] = []
      fields.reserveCapacity(Int(count))
      for _ in 0..<count { fields.append((try text(), try text())) }
      return fields
    }

    mutating func handed() throws(Defect) -> HandedRecords? {
      let pen = try text()
      var revision: UInt64 = try number()
      let digest: UInt64 = try number()
      let count: UInt32 = try number()
      guard Int(count) <= (bytes.count - position) / leastBytes else { throw missing }
      var records: [JournalRecord] = []
      records.reserveCapacity(Int(count))
      for _ in 0..<count {
        revision &+= 1
        let milliseconds: Int64 = try number()
        records.append(JournalRecord(revision: revision, milliseconds: milliseconds, body: try content()))
      }
      return HandedRecords(records, digest: JournalDigest(value: digest), pen: pen)
    }

    mutating func content() throws(Defect) -> [UInt8] {
      let length: UInt32 = try number()
      return Array(try take(Int(length)))
    }

    mutating func take(_ count: Int) throws(Defect) -> ArraySlice<UInt8> {
      guard bytes.count - position >= count else { throw missing }
      defer { position += count }
      return bytes[position..<position + count]
    }

    func end() throws(Defect) {
      let rest = bytes.count - position
      guard rest == 0 else { throw Defect(description: "\(rest) bytes stand behind the last of the batch") }
    }

    private var missing: Defect { Defect(description: "the batch ends at byte \(bytes.count), before it is whole") }
  }
}

/// How far a node has come that passes writes on in a batch: the field `Keyway-Records` of that request. The answer
/// then has the records after it, where the other node has the same journal up to there.
struct HandedPlace: Hashable, Sendable {
  /// The epoch of its journal, and the newest record that it has.
  let cursor: Cursor
  /// The digest there.
  let digest: JournalDigest

  /// A place of a journal.
  init(cursor: Cursor, digest: JournalDigest) {
    (self.cursor, self.digest) = (cursor, digest)
  }

  /// What a field says: a cursor, a blank, and the digest as 1 to 16 hexadecimal digits. Nil where it says something
  /// else.
  init?(_ field: String) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, let cursor = Cursor(String(parts[0])), !parts[1].hasPrefix("+"),
      let digest = UInt64(parts[1], radix: 16)
    else { return nil }
    self.init(cursor: cursor, digest: JournalDigest(value: digest))
  }

  /// As it is sent.
  var field: String { "\(cursor) \(String(digest.value, radix: 16))" }
}

extension [UInt8] {
  fileprivate mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }

  fileprivate mutating func append(text: String) {
    append(number: UInt32(text.utf8.count))
    append(contentsOf: text.utf8)
  }

  fileprivate mutating func append(content: [UInt8]) {
    append(number: UInt32(content.count))
    append(contentsOf: content)
  }

  fileprivate mutating func append(fields: [(name: String, value: String)]) {
    append(number: UInt16(fields.count))
    for field in fields {
      append(text: field.name)
      append(text: field.value)
    }
  }
}
