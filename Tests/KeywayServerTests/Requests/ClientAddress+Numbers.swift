import Glibc

@testable import HTTPServer

extension ClientAddress {
  /// Some address, another for each number.
  init(number: UInt8) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(127) | UInt32(number) << 24
    self = withUnsafeBytes(of: &address) { ClientAddress($0.bindMemory(to: sockaddr.self).baseAddress) }
  }
}
