import Foundation

/// A server whose durable writes are measured: what it is sent.
struct WritePeer: Hashable, Sendable {
  /// The servers that there are.
  enum Kind: String, CaseIterable, Sendable {
    /// This one.
    case keyway
    /// etcd 3.4, through its JSON gateway.
    case etcd
    /// Redis that syncs its append-only file before it answers, behind webdis.
    case webdis
  }

  /// Which it is.
  let kind: Kind
  /// Where it is.
  let address: SocketAddress
  /// How many keys are written.
  let keys: Int
  /// How long a value is.
  let sizeBytes: Int

  /// The answers of webdis have the status 200 also where Redis refuses: `{"SET":[true,"OK"]}` is the good one.
  var answerBytes: Int? { kind == .webdis ? 19 : nil }

  /// What makes the objects that are set, or anything that succeeds as soon as the server is up.
  var preparation: [[UInt8]] {
    switch kind {
    case .keyway: (0..<keys).map { address.setting(Self.objectPath($0), #"{"text":""}"#) }
    case .etcd, .webdis: writes.prefix(1).map(\.bytes)
    }
  }

  /// Sets each key once: a value of `sizeBytes` with a number in it.
  var writes: [NumberedRequest] {
    let number = String(repeating: "?", count: NumberedRequest.digitCount)
    let filling = String(repeating: "x", count: max(0, sizeBytes - NumberedRequest.digitCount))
    return (0..<keys).map { key in
      switch kind {
      case .keyway:
        return request("PUT", Self.objectPath(key) + "/text", "\"\(number)\(filling)\"")
      case .etcd:
        // Digits are also digits of base64: those in front of the value's text make other bytes, and as many.
        let value = Self.base64(String(repeating: "x", count: sizeBytes)).dropFirst(number.count)
        return request(
          "POST", "/v3/kv/put", #"{"key":"\#(Self.base64("bench/\(key)"))","value":"\#(number)\#(value)"}"#)
      case .webdis:
        return request("PUT", "/SET/bench-\(key)", number + filling)
      }
    }
  }

  /// Reads each key once; only of Keyway.
  var reads: [NumberedRequest] {
    (0..<keys).map { key in
      NumberedRequest(
        String(decoding: address.reading(Self.objectPath(key) + "/text"), as: UTF8.self))
    }
  }

  private static func objectPath(_ key: Int) -> String { "/v1/objects/Note/durable-\(key)" }

  private static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  private func request(_ method: String, _ path: String, _ body: String) -> NumberedRequest {
    NumberedRequest(
      """
      \(method) \(path) HTTP/1.1\r
      Host: \(address.hostField)\r
      Content-Type: application/json\r
      Content-Length: \(body.utf8.count)\r
      \r
      \(body)
      """)
  }
}
