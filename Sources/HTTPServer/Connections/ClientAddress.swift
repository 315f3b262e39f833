import Glibc

/// An address that requests come from, and the key under which a client's share is counted: its `network`, or a digest
/// of its name, if the handler knows the name. An IPv4 address and its form inside IPv6 are equal.
package struct ClientAddress: Hashable, Sendable {
  /// The first half of a 128-bit number: the address in the form of IPv6.
  package let high: UInt64
  /// The second half.
  package let low: UInt64

  /// Creates the key of a client that is known by its name: the first bits of a digest of the name, after a prefix that
  /// no client's address has (that of multicast addresses, RFC 4291 §2.7).
  package init(digest high: UInt64, _ low: UInt64) {
    self.high = Self.digestPrefix | high >> 8
    self.low = high << 56 | low >> 8
  }

  /// Parses an address; nil if the text is not one.
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

  /// Returns the client for which shares are counted at this address: for an IPv6 address the network of its first
  /// `prefixBits` bits, since a host may use every address of its network (RFC 4291 §2.5.4, RFC 8981); for any other
  /// address the address itself. IPv4 addresses, the loopback address and `unknown` all begin with 64 zero bits.
  package func network(prefixBits: Int) -> ClientAddress {
    guard high != 0, !isDigest, prefixBits < 128 else { return self }
    let (highBits, lowBits) = (min(prefixBits, 64), max(prefixBits - 64, 0))
    return ClientAddress(
      high: high & ~(UInt64.max >> UInt64(highBits)), low: low & ~(UInt64.max >> UInt64(lowBits)))
  }

  private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// True if the value is a digest instead of an address.
  package var isDigest: Bool { high & Self.digestPrefix == Self.digestPrefix }

  /// True for the loopback addresses, 127.0.0.0/8 and ::1 (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
  package var isLoopback: Bool { high == 0 && (low == 1 || low >> 24 == 0xFFFF_7F) }

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

  /// The address of a client without one: a Unix domain socket, the work of an operator's own process, and tests.
  package static let unknown = ClientAddress(nil)
}

extension ClientAddress: CustomStringConvertible {
  /// The address as it is usually written (`127.0.0.1`, `::1`). A digest looks like a multicast address, and `unix`
  /// stands for a client without an address.
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

/// The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. From any other client these fields prove
/// nothing.
package struct TrustedProxies: Sendable {
  /// The word for the clients of a Unix domain socket.
  private static let socketWord = "unix"

  /// A range of addresses that begin with the same bits.
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

  /// No trusted proxies.
  package static let none = TrustedProxies(ranges: [], hasSocket: false)

  private init(ranges: [Range], hasSocket: Bool) {
    self.ranges = ranges
    self.hasSocket = hasSocket
  }

  /// Creates proxies from addresses (`192.0.2.1`, `2001:db8::1`), ranges of addresses (`10.0.0.0/8`), and `unix` for
  /// the clients of a Unix domain socket. Throws `noProxy` for anything else.
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

  /// Returns true if a peer is a trusted proxy; `isLocal` is true for a client of a Unix domain socket.
  func contains(_ peer: ClientAddress, isLocal: Bool) -> Bool {
    isLocal ? hasSocket : contains(peer)
  }

  private func contains(_ address: ClientAddress) -> Bool { ranges.contains { $0.contains(address) } }

  /// Returns the origin of a request that a trusted peer has forwarded, from all its `X-Forwarded-For` fields, joined
  /// by commas: the rightmost address that is not a trusted proxy, since each proxy appends the address that it saw.
  /// Returns the peer if a malformed part comes first or nothing is left.
  func origin(of forwarded: String?, through peer: ClientAddress) -> ClientAddress {
    for part in (forwarded ?? "").split(separator: ",", omittingEmptySubsequences: false).reversed() {
      guard let address = ClientAddress(Self.trimmed(part)) else { return peer }
      if !contains(address) { return address }
    }
    return peer
  }

  /// Returns what a peer reports about the client whose request it forwards; nil if the peer is not trusted. `field`
  /// returns a header field by its lower-case name.
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
