package import Foundation
import FoundationNetworking

/// A client of one server: requests with whole responses. Streams are `EventStreamConnection`'s.
///
/// A value that can be shared freely: what it holds never changes, and the connections belong to the URL session, which
/// keeps them alive between requests.
package struct Client: Sendable {
  /// Where the server is: scheme, host and port, perhaps the beginning of a path.
  package let server: URL
  /// How many seconds a response may take.
  package let timeoutSeconds: Double

  private let session: URLSession
  /// Sent with each request.
  private let token: String?

  /// True if no token says who asks.
  package var isAnonymous: Bool { token == nil }

  /// A client of the server at `server`, which opens at most `connections` connections at a time; `token` says who
  /// asks (RFC 6750 §2.1).
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

  /// No cache and no cookies: a response is what the server says now, to any client.
  static func configuration(timeoutSeconds: Double, connections: Int) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.httpMaximumConnectionsPerHost = connections
    configuration.timeoutIntervalForRequest = timeoutSeconds
    return configuration
  }

  /// The response to a request, whatever its status. A body is sent as `application/json` unless `headers` say
  /// otherwise. Throws a `ClientError`, or a `CancellationError`.
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
      let hint = error.code == .cannotConnectToHost ? "; --server names another address" : ""
      throw ClientError.unreachable(server: server.absoluteString, reason: Self.reason(error) + hint)
    }
  }

  /// The response to a request that has to succeed; throws a `Problem` for every status from 400.
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
      // URLSession leaves out a field with such a value, and with If-Match the condition.
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
    case .timedOut: "it took too long"
    case .cannotConnectToHost: "the connection was refused"
    case .cannotFindHost: "there is no host of that name"
    case .networkConnectionLost: "the connection was lost"
    default: error.localizedDescription
    }
  }
}
