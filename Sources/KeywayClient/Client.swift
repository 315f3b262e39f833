package import Foundation
import FoundationNetworking
import KeyValueModel

/// A client of one server, for requests with whole responses. `EventStreamConnection` is for streams.
///
/// A value that can be shared freely: its contents never change, and the connections belong to the URL session, which
/// keeps them alive between requests.
package struct Client: Sendable {
  /// The server's URL: scheme, host and port, and perhaps the beginning of a path.
  package let server: URL
  /// The maximum number of seconds for a response.
  package let timeoutSeconds: Double

  private let session: URLSession
  /// The token that is sent with each request; nil for none.
  private let token: String?

  /// True if requests have no token, and so are anonymous.
  package var isAnonymous: Bool { token == nil }

  /// Creates a client of the server at `server`, which opens at most `connections` connections at a time; `token`
  /// identifies the user (RFC 6750 §2.1).
  package init(server: String, timeoutSeconds: Double = 30, connections: Int = 6, token: String? = nil)
    throws(ClientError)
  {
    guard let url = URL(string: server), let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host, !host.isEmpty
    else { throw .invalidServer(server) }
    self.server = url
    self.timeoutSeconds = timeoutSeconds
    self.token = token
    session = URLSession(configuration: Self.configuration(timeoutSeconds: timeoutSeconds, connections: connections))
  }

  /// Returns a configuration without cache and cookies: a response is what the server says now, to any client.
  static func configuration(timeoutSeconds: Double, connections: Int) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.httpMaximumConnectionsPerHost = connections
    configuration.timeoutIntervalForRequest = timeoutSeconds
    return configuration
  }

  /// Sends a request and returns the response, whatever its status. A body is sent as `application/json` unless
  /// `headers` specify otherwise. Throws a `ClientError`, or a `CancellationError`.
  package func request(
    _ method: String, _ path: String, body: [UInt8]? = nil, headers: [String: String] = [:]
  ) async throws -> ClientResponse {
    var request = try urlRequest(method, path, headers: headers)
    if let body {
      request.httpBody = Data(body)
      if request.value(forHTTPHeaderField: "Content-Type") == nil {
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      }
    }
    do {
      let (data, response) = try await session.data(for: request)
      return Self.response(response, body: [UInt8](data))
    } catch let error as URLError {
      if error.code == .cancelled { throw CancellationError() }
      let hint = error.code == .cannotConnectToHost ? "; use --server for another address" : ""
      throw ClientError.unreachable(server: server.absoluteString, reason: Self.reason(error) + hint)
    }
  }

  /// Sends a request that has to succeed and returns the response. Throws a `Problem` for every status from 400.
  package func send(
    _ method: String, _ path: String, body: [UInt8]? = nil, headers: [String: String] = [:]
  ) async throws -> ClientResponse {
    let response = try await request(method, path, body: body, headers: headers)
    guard response.status < 400 else { throw Problem(response) }
    return response
  }

  func urlRequest(_ method: String, _ path: String, headers: [String: String]) throws(ClientError) -> URLRequest {
    var base = server.absoluteString
    if base.hasSuffix("/") { base.removeLast() }
    guard path.hasPrefix("/"), let url = URL(string: base + path) else { throw .invalidPath(path) }
    var request = URLRequest(url: url, timeoutInterval: timeoutSeconds)
    request.httpMethod = method
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    for (name, value) in headers {
      // URLSession drops a field with such a value, and with If-Match the condition.
      guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else { throw .invalidHeader(name) }
      request.setValue(value, forHTTPHeaderField: name)
    }
    return request
  }

  static func response(_ response: URLResponse, body: [UInt8]) -> ClientResponse {
    guard let response = response as? HTTPURLResponse else { return ClientResponse(status: 0, body: body) }
    var headers: [String: String] = [:]
    for case (let name as String, let value as String) in response.allHeaderFields { headers[name] = value }
    return ClientResponse(status: response.statusCode, headers: headers, body: body)
  }

  static func reason(_ error: URLError) -> String {
    switch error.code {
    case .timedOut: "the request timed out"
    case .cannotConnectToHost: "the connection was refused"
    case .cannotFindHost: "the host was not found"
    case .networkConnectionLost: "the connection was lost"
    default: error.localizedDescription
    }
  }
}

/// A whole response of the server.
package struct ClientResponse: Hashable, Sendable {
  /// The status code.
  package var status: Int
  /// The header fields, names in lower case.
  package var headers: [String: String]
  /// The body; empty if there is none.
  package var body: [UInt8]

  /// Creates a response with these parts; names of header fields in any case.
  package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = Dictionary(
      headers.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
    self.body = body
  }

  /// Returns the value of a header field, whatever the case of its name.
  package func header(_ name: String) -> String? { headers[name.lowercased()] }

  /// The body as text.
  package var text: String { String(decoding: body, as: UTF8.self) }
}

/// The failures between client and server, besides a response that is a problem.
package enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The server's address is not an `http` or `https` URL with a host.
  case invalidServer(String)
  /// A path cannot be converted to a URL.
  case invalidPath(String)
  /// The value of a header field has a character that none can have (RFC 9110 §5.5).
  case invalidHeader(String)
  /// There is no response: the connection was refused, lost or too slow.
  case unreachable(server: String, reason: String)
  /// The response to a request for a stream is not a stream.
  case notAnEventStream(path: String, contentType: String)
  /// One event is larger than the client holds in memory.
  case eventTooLarge(limitBytes: Int)

  /// The error as a sentence for a terminal.
  package var description: String {
    switch self {
    case .invalidServer(let text): "\(text) is not the address of a server; write it like http://127.0.0.1:8080"
    case .invalidPath(let path): "\(path) is not a path of the server"
    case .invalidHeader(let name): "the value of \(name) has a line end or another control character"
    case .unreachable(let server, let reason): "no response from \(server): \(reason)"
    case .notAnEventStream(let path, let contentType): "\(path) is not an event stream but \(contentType)"
    case .eventTooLarge(let limit): "an event is larger than \(limit) bytes"
    }
  }
}

/// A response that refuses a request: a problem document (RFC 9457), if the server sends one, else the bare status.
package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
  /// The status code of the response.
  package var status: Int
  /// The last part of `type`: `undefined-key`. Nil if the response was not a problem document.
  package var code: String?
  /// The short, constant text.
  package var title: String?
  /// The explanation of the fault in this request.
  package var detail: String?
  /// The object that the problem is about.
  package var object: String?
  /// The key path that the problem is about.
  package var keyPath: String?
  /// The index of the operation in a transaction.
  package var operation: Int64?

  /// Creates the problem of a response with an error status.
  package init(_ response: ClientResponse) {
    status = response.status
    guard let members = try? Value(json: response.body).asObject else { return }
    code = members["type"]?.asString?.split(separator: "/").last.map(String.init)
    title = members["title"]?.asString
    detail = members["detail"]?.asString
    object = members["object"]?.asString
    keyPath = members["keyPath"]?.asString
    operation = members["operation"]?.asInteger
  }

  /// The problem in one line: `404 undefined-key: Account has no key balnce (Account/1 balnce)`.
  package var description: String {
    var text = String(status)
    if let code { text += " \(code)" }
    if let clause = detail ?? title { text += ": \(clause)" }
    let place = [object, keyPath, operation.map { "operation \($0)" }].compactMap(\.self)
    if !place.isEmpty { text += " (\(place.joined(separator: " ")))" }
    return text
  }
}

/// The paths of the server's resources, from the user's input.
package enum ResourcePath {
  /// Returns the path of the resource that `text` names: `text` itself if it begins with a slash, else a path below
  /// `/v1/objects` (`Account/1`, `Account?limit=5`); with a key path, that of its property.
  package static func path(_ text: String, keyPath: String? = nil) -> String {
    // A `%` that two hexadecimal digits follow is unchanged: it is encoded already.
    let plain = text.replacing(/%(?![0-9A-Fa-f]{2})/, with: "%25")
    var path = encoded(text.hasPrefix("/") ? plain : "/v1/objects/" + plain, also: "%/?&=")
    guard let keyPath else { return path }
    let query = path.firstIndex(of: "?") ?? path.endIndex
    path.insert(contentsOf: "/" + encoded(keyPath), at: query)
    return path
  }

  /// Returns a path with more parameters appended; nil values are left out.
  package static func adding(_ parameters: [(name: String, value: String?)], to path: String) -> String {
    var path = path
    for case (let name, let value?) in parameters {
      path += path.contains("?") ? "&" : "?"
      path += encoded(name) + "=" + encoded(value)
    }
    return path
  }

  /// Returns text in which every character is percent-encoded that RFC 3986 does not allow in a path segment or a
  /// parameter, except for the characters in `also`.
  private static func encoded(_ text: String, also: String = "") -> String {
    let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    let allowed = CharacterSet(charactersIn: letters + "0123456789-._~@:,!$'()*;" + also)
    return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text
  }
}
