import KeyValueModel

/// Operations as the body of one transaction.
struct TransactionBody: Sendable {
  private static let head = Array("{\"operations\":[".utf8)
  private static let tail = Array("]}".utf8)

  private(set) var operations: [PlannedOperation] = []
  private(set) var bytes = head

  /// The bodies of so many operations: one, or more where they would be over a limit. Their order is kept, so each is
  /// right by itself. An operation that is over `maximumBytes` alone goes alone.
  static func bodies(
    of operations: [PlannedOperation], maximumBytes: Int, maximumOperations: Int = ImportLimits.operations
  ) -> [TransactionBody] {
    var bodies: [TransactionBody] = []
    var body = TransactionBody()
    for operation in operations {
      var text: [UInt8] = []
      operation.json.appendJSON(to: &text)
      let isFull =
        body.bytes.count + text.count + 1 + tail.count > maximumBytes || body.operations.count >= maximumOperations
      if isFull, !body.operations.isEmpty {
        bodies.append(body.closed)
        body = TransactionBody()
      }
      if !body.operations.isEmpty { body.bytes.append(UInt8(ascii: ",")) }
      body.bytes += text
      body.operations.append(operation)
    }
    if !body.operations.isEmpty { bodies.append(body.closed) }
    return bodies
  }

  private var closed: TransactionBody {
    var body = self
    body.bytes += Self.tail
    return body
  }
}
