import Testing

@testable import HTTPServer

/// The client of a request that trusted proxies forwarded.
@Suite("Trusted proxies") struct TrustedProxiesTests {
  private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

  @Test("Addresses and ranges are compared by their bits; the forms of an IPv4 address are one")
  func ranges() throws {
    let cases: [(entry: String, inside: [String], outside: [String])] = [
      ("192.0.2.1", ["192.0.2.1", "::ffff:192.0.2.1"], ["192.0.2.2", "::1"]),
      ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0", "9.255.255.255", "::a00:0"]),
      ("10.1.2.3/31", ["10.1.2.2", "10.1.2.3"], ["10.1.2.4", "10.1.2.1"]),
      ("0.0.0.0/0", ["1.2.3.4", "255.255.255.255"], ["::1", "2001:db8::1"]),
      ("::/0", ["::1", "1.2.3.4"], []),
      ("2001:db8::/32", ["2001:db8::1", "2001:db8:ffff::"], ["2001:db9::", "2001:db7:ffff::"]),
      ("2001:db8::8:0/109", ["2001:db8::8:0", "2001:db8::f:ffff"], ["2001:db8::10:0", "2001:db8::7:ffff"]),
      ("2001:db8::1/128", ["2001:db8::1"], ["2001:db8::2"]),
    ]
    for (entry, inside, outside) in cases {
      let proxies = try TrustedProxies([entry])
      for text in inside { #expect(try proxies.contains(address(text), isLocal: false), "\(text) in \(entry)") }
      for text in outside { #expect(try !proxies.contains(address(text), isLocal: false), "\(text) in \(entry)") }
      #expect(!proxies.contains(.unknown, isLocal: true))
    }
    #expect(try TrustedProxies(["unix"]).contains(.unknown, isLocal: true))
    #expect(try !TrustedProxies(["unix"]).contains(address("127.0.0.1"), isLocal: false))
  }

  @Test("An IPv6 address counts for its network, any other for itself")
  func networks() throws {
    let cases: [(address: String, prefixBits: Int, network: String)] = [
      ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::"),
      ("2001:db8:1:2:ffff::", 64, "2001:db8:1:2::"),
      ("2001:db8:1:2ff:3::1", 56, "2001:db8:1:200::"),
      ("2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::"),
      ("2001:db8:1:2:3:4:5:6", 80, "2001:db8:1:2:3::"),
      ("2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6"),
      ("::1", 64, "::1"),
      ("::ffff:192.0.2.7", 32, "192.0.2.7"),
      ("192.0.2.7", 64, "192.0.2.7"),
    ]
    for (text, prefixBits, network) in cases {
      #expect(try address(text).network(prefixBits: prefixBits) == address(network), "\(text)/\(prefixBits)")
    }
    #expect(ClientAddress.unknown.network(prefixBits: 64) == .unknown)
    let identity = ClientAddress(digest: 1, 2)
    #expect(identity.network(prefixBits: 32) == identity)
  }

  @Test("The connections of one IPv6 network are counted together, those of a proxy by themselves")
  func connections() throws {
    let proxy = try address("2001:db8::9")
    let limiter = ConnectionLimiter(
      .with {
        $0.connections = 100; $0.connectionsPerAddress = 4
      }, isProxy: { $0 == proxy })
    let inside = try (1...6).map { limiter.admit(try address("2001:db8::\($0)")) }
    #expect(inside.map { $0 != nil } == [true, true, true, true, false, false])
    #expect(inside[1]?.address.description == "2001:db8::2" && inside[1]?.client.description == "2001:db8::")
    let others = try [limiter.admit(address("2001:db8:0:1::1")), limiter.admit(proxy), limiter.admit(address("::1"))]
    #expect(others.allSatisfy { $0 != nil })
    #expect(limiter.count == 7)
    withExtendedLifetime((inside, others)) {}
    #expect(limiter.count == 7)
  }

  @Test("A text that is not an address is refused")
  func mistakes() {
    for text in ["", "localhost", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::1/129", "10.0.0.1, ::1", "*"]
    {
      #expect(throws: HTTPServerError.noProxy(text)) { try TrustedProxies([text]) }
    }
  }

  @Test("The rightmost address that is no proxy counts; what is malformed there leaves it with the proxy")
  func origins() throws {
    let proxies = try TrustedProxies(["192.0.2.1", "10.0.0.0/8"])
    let peer = try address("192.0.2.1")
    let cases: [(field: String?, origin: String)] = [
      (nil, "192.0.2.1"), ("", "192.0.2.1"), ("198.51.100.7", "198.51.100.7"),
      ("203.0.113.5, 198.51.100.7", "198.51.100.7"), ("198.51.100.7,10.1.1.1 , 10.2.2.2", "198.51.100.7"),
      ("10.1.1.1", "192.0.2.1"), ("2001:db8::5, 10.1.1.1", "2001:db8::5"),
      ("198.51.100.7, unknown", "192.0.2.1"), ("198.51.100.7,", "192.0.2.1"),
      ("198.51.100.7, _x, 10.1.1.1", "192.0.2.1"),
      ("unknown, 198.51.100.7", "198.51.100.7"), ("198.51.100.7:80", "192.0.2.1"), ("[2001:db8::5]", "192.0.2.1"),
      ("1.2.3.4 5.6.7.8", "192.0.2.1"),
    ]
    for (field, origin) in cases {
      #expect(proxies.origin(of: field, through: peer) == (try address(origin)), "\(field ?? "none")")
    }
  }
}
