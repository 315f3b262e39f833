import Glibc

/// An address that requests come from, and what a client is known by where its share of something is counted: its
/// `network`, or a digest of its name, where the handler knows that. An IPv4 address and its form inside IPv6 are the
/// same.
package struct ClientAddress: Hashable, Sendable {
  /// The first half of a number of 128 bits: of the address as IPv6 has it.
  package let high: UInt64
  /// The second half.
  package let low: UInt64

  /// A client that is known by its name: the first bits of a digest of that, behind a prefix that no client's address
  /// has (that of multicast addresses, RFC 4291 §2.7).
  package init(digest high: UInt64, _ low: UInt64) {
    self.high = Self.digestPrefix | high >> 8
    self.low = high << 56 | low >> 8
  }

  /// The address that a text is; nil where it is none.
  package init?(_ text: String) {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes[12]) == 1 {
      (bytes[10], bytes[11]) = (0xFF, 0xFF)
    } else if inet_pton(AF_INET6, text, &bytes) != 1 {
      return nil
    }
    (high, low) = bytes.withUnsafeBytes { bytes in
      (
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  private static let digestPrefix: UInt64 = 0xFF << 56

  /// The client that shares are counted for at this address: of an IPv6 address the network of its first `prefixBits`
  /// bits, since a host may use every address of its network (RFC 4291 §2.5.4, RFC 8981); of any other address the
  /// address itself. IPv4 addresses, the loopback and what has no address all begin with 64 zero bits.
  package func network(prefixBits: Int) -> ClientAddress {
    guard high != 0, !isDigest, prefixBits < 128 else { return self }
    let (highBits, lowBits) = (min(prefixBits, 64), max(prefixBits - 64, 0))
    return ClientAddress(
      high: high & ~(UInt64.max >> UInt64(highBits)), low: low & ~(UInt64.max >> UInt64(lowBits)))
  }

  private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Whether it is a digest, and no address.
  package var isDigest: Bool { high & Self.digestPrefix == Self.digestPrefix }

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

  /// The address of what has none: a socket of this machine, what an operator's own process does, and tests.
  package static let unknown = ClientAddress(nil)
}

extension ClientAddress: CustomStringConvertible {
  /// The address as it is usually written (`127.0.0.1`, `::1`); a digest looks like a multicast address,
  /// and `unix` is what has no address.
  package var description: String {
    if self == .unknown { return "unix" }
    var bytes = [UInt8](repeating: 0, count: 16)
    for index in 0..<8 {
      bytes[index] = UInt8(truncatingIfNeeded: high >> (56 - 8 * index))
      bytes[8 + index] = UInt8(truncatingIfNeeded: low >> (56 - 8 * index))
    }
    let isIPv4 = high == 0 && low >> 32 == 0xFFFF
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let address = isIPv4 ? Array(bytes.suffix(4)) : bytes
    guard inet_ntop(isIPv4 ? AF_INET : AF_INET6, address, &text, socklen_t(text.count)) != nil else { return "unknown" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. What anybody else sends there is a claim
/// that costs nothing to make.
package struct TrustedProxies: Sendable {
  /// What stands for the clients of a socket of this machine.
  private static let socketWord = "unix"

  /// Addresses that begin with the same bits.
  private struct Range: Sendable {
    let first: ClientAddress
    let mask: (high: UInt64, low: UInt64)

    init(_ address: ClientAddress, bits: Int) {
      mask = (
        bits == 0 ? 0 : UInt64.max << UInt64(max(0, 64 - bits)),
        bits <= 64 ? 0 : UInt64.max << UInt64(128 - bits)
      )
      first = address
    }

    func contains(_ address: ClientAddress) -> Bool {
      (address.high ^ first.high) & mask.high == 0 && (address.low ^ first.low) & mask.low == 0
    }
  }

  private let ranges: [Range]
  private let hasSocket: Bool

  /// Nobody is believed.
  package static let none = TrustedProxies(ranges: [], hasSocket: false)

  private init(ranges: [Range], hasSocket: Bool) {
    self.ranges = ranges
    self.hasSocket = hasSocket
  }

  /// Proxies given by addresses (`192.0.2.1`, `2001:db8::1`), by ranges of them (`10.0.0.0/8`), and by `unix` for who
  /// connects to a socket of this machine. Throws `noProxy` for what is none of these.
  package init(_ texts: [String]) throws(HTTPServerError) {
    var ranges: [Range] = []
    for text in texts where text != Self.socketWord {
      guard let range = Self.range(text) else { throw .noProxy(text) }
      ranges.append(range)
    }
    self.init(ranges: ranges, hasSocket: texts.contains(Self.socketWord))
  }

  private static func range(_ text: String) -> Range? {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = ClientAddress(String(parts[0])) else { return nil }
    let width = parts[0].contains(":") ? 128 : 32
    guard parts.count == 2 else { return Range(address, bits: 128) }
    guard parts[1].allSatisfy(\.isASCII), let bits = Int(parts[1]), (0...width).contains(bits) else { return nil }
    return Range(address, bits: 128 - width + bits)
  }

  /// Whether a peer is one of them; `isLocal` says that it is a client of a socket of this machine.
  func contains(_ peer: ClientAddress, isLocal: Bool) -> Bool {
    isLocal ? hasSocket : contains(peer)
  }

  private func contains(_ address: ClientAddress) -> Bool { ranges.contains { $0.contains(address) } }

  /// Where a request came from that a trusted peer has passed on, by all its `X-Forwarded-For`, joined by commas: the
  /// rightmost address that is none of a proxy, for each proxy adds the one that it saw. Where something malformed
  /// comes first, or nothing is left, it is the peer.
  func origin(of forwarded: String?, through peer: ClientAddress) -> ClientAddress {
    for part in (forwarded ?? "").split(separator: ",", omittingEmptySubsequences: false).reversed() {
      guard let address = ClientAddress(Self.trimmed(part)) else { return peer }
      if !contains(address) { return address }
    }
    return peer
  }

  /// What a peer says of the client whose request it passes on; nil where the peer is no trusted one. `field` gives a
  /// header field by its name in lower case.
  func forwarding(
    by peer: ClientAddress, isLocal: Bool, _ field: (String) -> String?
  ) -> (origin: ClientAddress, isOverTLS: Bool)? {
    guard contains(peer, isLocal: isLocal) else { return nil }
    let isOverTLS = field("x-forwarded-proto")?.lowercased().contains("https") == true
    return (origin(of: field("x-forwarded-for"), through: peer), isOverTLS)
  }

  private static func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return String(text)
  }
}
