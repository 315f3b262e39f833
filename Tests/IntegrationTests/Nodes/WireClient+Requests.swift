import TestKit

extension WireClient {
  /// Sends a request and reads the whole response.
  func send(_ request: WireRequest) throws -> WireResponse {
    try send(request.method, request.target, request.headers, body: request.body)
  }
}
