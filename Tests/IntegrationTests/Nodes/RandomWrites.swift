import Foundation
import KeyValueModel
import TestKit

/// Random writes to the example's objects: sets, new and deleted objects, transactions and refusals.
struct RandomWrites {
  private var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// Returns a random number below another.
  mutating func number(below limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

  /// Makes the next request. Some are refused.
  mutating func next() -> WireRequest {
    let value = number(below: 500)
    let employee = "Employee/\(1 + number(below: 6))"
    switch number(below: 9) {
    case 0: return WireRequest("PUT", "/v1/objects/\(employee)/salary", body: "\(value)")
    case 1:
      return WireRequest(
        "PUT", "/v1/objects/\(employee)",
        body: #"{"firstName":"N\#(value)","lastName":"L","salary":\#(value),"department":"Department/1"}"#)
    case 2: return WireRequest("PUT", "/v1/objects/Account/1/owner", body: #""Person/\#(7 + number(below: 3))""#)
    case 3: return WireRequest("PATCH", "/v1/objects/Person/7", body: #"{"lastName":"L\#(value)"}"#)
    case 4: return WireRequest("DELETE", "/v1/objects/Employee/6")
    case 5:
      return WireRequest(
        "POST", "/v1/transactions",
        body: """
          {"operations":[{"op":"set","object":"Account/1","keyPath":"balance","value":\(value)},\
          {"op":"set","object":"\(employee)","keyPath":"salary","value":\(value)}]}
          """)
    case 6: return WireRequest("POST", "/v1/objects/Transaction", body: #"{"amount":\#(value),"account":"Account/1"}"#)
    default: return WireRequest("PUT", "/v1/objects/Account/1/balance", body: "\(value)")
    }
  }
}

extension WireClient {
  /// Sends a request and reads the whole response.
  func send(_ request: WireRequest) throws -> WireResponse {
    try send(request.method, request.target, request.headers, body: request.body)
  }
}
