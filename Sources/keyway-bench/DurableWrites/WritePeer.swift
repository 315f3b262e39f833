import Foundation
import TestKit

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

  /// Makes the objects that are set, or does anything that succeeds as soon as the server is up.
  func prepare() throws {
    let connection = try WireConnection(address, timeoutSeconds: 5)
    switch kind {
    case .keyway:
      for key in 0..<keys { try connection.must(.setting(Self.objectPath(key), #"{"text":""}"#)) }
    case .etcd, .webdis: try connection.must(put(0, number: Self.number.replacing("?", with: "0")))
    }
  }

  /// Sets each key once: a value of `sizeBytes` with a number in it.
  var writes: [NumberedRequest] { (0..<keys).map { numbered(put($0, number: Self.number)) } }

  /// Reads each key once; only of Keyway.
  var reads: [NumberedRequest] {
    (0..<keys).map { numbered(WireRequest("GET", Self.objectPath($0) + "/text")) }
  }

  private static let number = String(repeating: "?", count: NumberedRequest.digitCount)

  private func put(_ key: Int, number: String) -> WireRequest {
    let filling = String(repeating: "x", count: max(0, sizeBytes - number.count))
    switch kind {
    case .keyway: return .setting(Self.objectPath(key) + "/text", "\"\(number)\(filling)\"")
    case .etcd:
      // Digits are also digits of base64: those in front of the value's text make other bytes, and as many.
      let value = Self.base64(String(repeating: "x", count: sizeBytes)).dropFirst(number.count)
      let body = #"{"key":"\#(Self.base64("bench/\(key)"))","value":"\#(number)\#(value)"}"#
      return WireRequest("POST", "/v3/kv/put", body: body)
    case .webdis: return WireRequest("PUT", "/SET/bench-\(key)", body: number + filling)
    }
  }

  private func numbered(_ request: WireRequest) -> NumberedRequest {
    NumberedRequest(request.text(to: address))
  }

  private static func objectPath(_ key: Int) -> String { "/v1/objects/Note/durable-\(key)" }

  private static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
}
