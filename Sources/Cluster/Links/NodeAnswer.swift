import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer

/// The answer of another node.
struct NodeAnswer: Sendable {
  let status: Int
  /// The header fields, in the order in which they arrived.
  let fields: [(name: String, value: String)]
  var body: [UInt8] = []

  /// The value of a field, looked up without regard to case; nil if the answer does not have it.
  subscript(name: String) -> String? {
    let name = name.lowercased()
    return fields.first { $0.name.lowercased() == name }?.value
  }

  /// True for a stream of server-sent events.
  var isEventStream: Bool { self["Content-Type"]?.hasPrefix("text/event-stream") == true }
}

/// Answers of other nodes on their way back to clients.
///
/// Another node may be broken, replaced or compromised, and its answer must not become a page, a cookie or a
/// redirection under this server's name. So only what a node of this program answers is forwarded, and nothing by
/// default: a status that the program uses, the fields listed below, and content that is JSON. (The events of a stream
/// are forwarded as events, by `StreamRelay`.)
extension NodeAnswer {
  /// The maximum size of an answer to a forwarded request, in bytes.
  static let largestBytes = 256 << 20

  private static let statuses = Set(ProblemCode.allCases.map(\.status.code) + [200, 201, 204, 304])
  private static let passedFields: [HTTPField.Name] = [
    .contentType, .eTag, .keywayCursor, .location, .retryAfter, .allow, .acceptPatch, .acceptEncoding, .cacheControl,
    .wwwAuthenticate, .idempotencyReplayed, .link,
  ]
  private static let contentTypes = ["application/json", "application/problem+json"]
  private static let eventStream = "text/event-stream"

  /// Returns the answer as this node gives it to the client whose request it forwarded. Omits `Keyway-Cursor` from a
  /// server error (5xx): it names the state of the other node, which may still be reading its store, and the client
  /// gets this node's state instead. Throws a fault if the answer is not one that a node gives.
  func passedBack() throws(NodeFault) -> Response {
    guard Self.statuses.contains(status) else { throw Self.malformed("has the status \(status)") }
    try checkContentType()
    var response = Response(status: HTTPResponse.Status(code: status), body: body)
    for name in Self.passedFields where name != .keywayCursor || status < 500 {
      guard let value = self[name.rawName] else { continue }
      response.fields[name] = value
    }
    for (name, prefix) in [(HTTPField.Name.location, "/v1/"), (.link, "</v1/")] {
      guard let target = response.fields[name], !target.hasPrefix(prefix) else { continue }
      throw Self.malformed("leads to '\(target.shortened(to: 100))'")
    }
    return response
  }

  /// Returns the answer to a HEAD request, as this node gives it: the head of a stream, or the length of the content
  /// that GET would return. Throws as `passedBack` does.
  func headPassedBack() throws(NodeFault) -> Response {
    let response = try passedBack()
    if status == 200, isEventStream { return Response(streamHead: response.fields) }
    let contentCount = self["Content-Length"].flatMap { Int($0) } ?? 0
    return Response(status: response.status, fields: response.fields, withholding: contentCount)
  }

  /// The code of the problem that the answer reports; nil if the answer is not a problem.
  var problemCode: ProblemCode? {
    guard let value = try? Value(json: body), case .object(let members) = value,
      case .string(let type)? = members["type"]
    else { return nil }
    return type.split(separator: "/").last.flatMap { ProblemCode(rawValue: String($0)) }
  }

  private func checkContentType() throws(NodeFault) {
    guard let type = self["Content-Type"] else {
      guard body.isEmpty else { throw Self.malformed("has content without a Content-Type") }
      return
    }
    let essence = type.prefix { $0 != ";" }.trimmingSpaces().lowercased()
    let isHeadOfStream = essence == Self.eventStream && status == 200 && body.isEmpty
    guard Self.contentTypes.contains(essence) || isHeadOfStream else {
      throw Self.malformed("has the Content-Type '\(type.shortened(to: 100))'")
    }
  }

  private static func malformed(_ defect: String) -> NodeFault {
    NodeFault("its answer \(defect), unlike any answer of a node")
  }
}
