import Glibc

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
