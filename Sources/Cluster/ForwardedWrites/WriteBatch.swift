import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store

/// The encoding of forwarded writes, several in one request, and of the answers to them: `POST /v1/nodes/writes`.
///
/// A batch of requests is four bytes that name the format and the number of requests (4 bytes); for each request its
/// method, its target, the number of its fields (2), the name and the value of each field, and its body. A batch of
/// answers has other bytes for the format, and a status (2) in place of the method and the target; in a third format,
/// the records that the sender lacks follow the answers. A text is its length (4) and that many bytes of UTF-8, a body
/// its length (4) and the bytes. Numbers are little-endian.
enum WriteBatch {
  /// A description of what is wrong with bytes that are not a batch.
  struct Defect: Error, Hashable, CustomStringConvertible {
    let description: String
  }

  /// The target of the request with a batch.
  static let target = "/v1/nodes/writes"
  /// The media type of a batch.
  static let mediaType = "application/octet-stream"
  /// The maximum number of requests in a batch. The thread of a connection handles all of them before it turns to other
  /// connections.
  static let mostRequests = 128
  /// The maximum size of a batch, in bytes.
  static let mostBytes = 512 << 10
  /// The maximum size of a request in a batch, in bytes. A larger request is sent by itself.
  static let mostRequestBytes = 8 << 10
  /// The maximum total size of the bodies of the answers, in bytes. Beyond it, the answer to a successful write has no
  /// body.
  static let mostAnswerBytes = 16 << 20
  /// The maximum total size of the bodies of the records that are sent with the answers, in bytes. The sender of the
  /// batch reads the rest itself.
  static let mostRecordBytes = 256 << 10
  /// The maximum size of an answer without its body, in bytes.
  static let answerHeadBytes = 64 << 10

  private static let requestForm = Array("kww1".utf8)
  private static let answerForm = Array("kwa1".utf8)
  /// The format of answers followed by records: the address of the node that appended last, the revision before the
  /// first record (8 bytes), the digest at the last one (8), the number of records (4), and for each record its time in
  /// milliseconds (8) and its body. It is sent only to nodes that ask for records.
  private static let recordsForm = Array("kwa2".utf8)
  /// The minimum size of a request or an answer, in bytes.
  private static let leastBytes = 8

  // MARK: Requests

  /// Returns the encoded size of a request, in bytes.
  static func byteCount(of request: NodeRequest) -> Int {
    request.fields.reduce(14 + request.method.utf8.count + request.target.utf8.count + request.body.count) {
      $0 + 8 + $1.name.utf8.count + $1.value.utf8.count
    }
  }

  /// Encodes a batch of requests.
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

  /// Decodes a batch of requests. Throws a `Defect` if the bytes are not one.
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
        throw Defect(description: "request \(index) has an invalid method, target or field")
      }
      requests.append(request)
    }
    try reader.end()
    return requests
  }

  // MARK: Answers

  /// Encodes the answers to a batch, with the records that are sent along.
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

  /// Decodes the answers to a batch, of which there must be `expected`, and the records that follow them. Throws a
  /// `Defect` if the bytes are not that.
  static func answers(
    in bytes: [UInt8], count expected: Int
  ) throws(Defect) -> (answers: [NodeAnswer], handed: HandedRecords?) {
    var reader = Reader(bytes: bytes)
    let hasRecords = bytes.starts(with: recordsForm)
    let count = try reader.count(hasRecords ? recordsForm : answerForm)
    guard count == expected else { throw Defect(description: "the batch has \(count) answers to \(expected) requests") }
    var answers: [NodeAnswer] = []
    for _ in 0..<count {
      let status: UInt16 = try reader.number()
      guard (200...599).contains(status) else { throw Defect(description: "\(status) is not the status of an answer") }
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
      guard try take(4) == form[...] else { throw Defect(description: "the bytes are not a batch of this version") }
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
      guard rest == 0 else { throw Defect(description: "\(rest) bytes follow the end of the batch") }
    }

    private var missing: Defect { Defect(description: "the batch ends at byte \(bytes.count), before it is complete") }
  }
}

/// The position in the journal that the sender of a batch has reached: the field `Keyway-Records` of the request. If
/// the other node has the same journal up to there, its answer includes the records after that.
struct HandedPlace: Hashable, Sendable {
  /// The epoch of the sender's journal, and the newest record that it has.
  let cursor: Cursor
  /// The digest at that record.
  let digest: JournalDigest

  /// Creates a position in a journal.
  init(cursor: Cursor, digest: JournalDigest) {
    (self.cursor, self.digest) = (cursor, digest)
  }

  /// Reads the value of a field: a cursor, a space, and the digest as 1 to 16 hexadecimal digits. Nil if it has another
  /// form.
  init?(_ field: String) {
    let parts = field.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, let cursor = Cursor(String(parts[0])), !parts[1].hasPrefix("+"),
      let digest = UInt64(parts[1], radix: 16)
    else { return nil }
    self.init(cursor: cursor, digest: JournalDigest(value: digest))
  }

  /// The value of the field.
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
