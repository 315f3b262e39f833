import Glibc

/// A client's IP address as a key; an IPv4 address and its form inside IPv6 are the same.
struct ClientAddress: Hashable {
  private let high: UInt64
  private let low: UInt64

  init(_ address: UnsafePointer<sockaddr>?) {
    guard let address else {
      (high, low) = (0, 0)
      return
    }
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      let number = raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr
      (high, low) = (0, 0xFFFF_0000_0000 | UInt64(UInt32(bigEndian: number)))
    case AF_INET6:
      let bytes = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
      (high, low) = withUnsafeBytes(of: bytes) { bytes in
        (
          UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
          UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
      }
    default: (high, low) = (0, 0)
    }
  }
}
