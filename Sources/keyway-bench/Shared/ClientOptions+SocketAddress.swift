import CommandSupport
import TestKit

extension ClientOptions {
  /// The server's address, with the token that every request of the benchmark carries.
  var socketAddress: SocketAddress {
    get throws {
      var result = try SocketAddress(server: address)
      result.token = try bearerToken()
      return result
    }
  }
}
