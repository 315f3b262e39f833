import Testing

/// The bytes of a valid or malformed request, and the expected response.
struct HTTPShape: Sendable, CustomTestStringConvertible {
  let name: String
  let text: String
  /// The status of the one response.
  let status: Int
  /// The code of its problem; nil if the request is accepted, and the connection kept.
  var code: String?

  var testDescription: String { name }

  private static let host = "Host: 127.0.0.1"
  private static let balance = "/v1/objects/Account/1/balance"

  /// Makes a request with a head of these lines, and a body.
  private static func head(_ lines: String..., body: String = "") -> String {
    lines.joined(separator: "\r\n") + "\r\n\r\n" + body
  }

  /// Makes a request to a resource that always exists, with further lines.
  private static func get(_ lines: String...) -> String {
    (["GET /healthz HTTP/1.1", host] + lines).joined(separator: "\r\n") + "\r\n\r\n"
  }

  /// Makes a write whose effect would be visible.
  private static func put(_ lines: String..., body: String = "7") -> String {
    (["PUT \(balance) HTTP/1.1", host, "Content-Type: application/json"] + lines).joined(separator: "\r\n")
      + "\r\n\r\n" + body
  }

  private static func malformed(_ rows: [(String, String)]) -> [HTTPShape] {
    rows.map { HTTPShape(name: $0.0, text: $0.1, status: 400, code: "malformed-request") }
  }

  private static func chunked(_ body: String) -> String { put("Transfer-Encoding: chunked", body: body) }

  static let requestLines =
    malformed([
      ("no version", head("GET /healthz", host)), ("nothing but a method", head("GET", host)),
      ("no HTTP", head("hello")), ("a TLS greeting", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}"),
      ("two spaces before the target", head("GET  /healthz HTTP/1.1", host)),
      ("two spaces before the version", head("GET /healthz  HTTP/1.1", host)),
      ("a space behind the version", head("GET /healthz HTTP/1.1 ", host)),
      ("a space in the target", head("GET /health z HTTP/1.1", host)),
      ("a tab for a space", head("GET\t/healthz HTTP/1.1", host)),
      ("a space before the method", head(" GET /healthz HTTP/1.1", host)),
      ("a method that is no token", head("G(T /healthz HTTP/1.1", host)),
      ("a control character in the target", head("GET /heal\u{1}thz HTTP/1.1", host)),
      ("NUL in the target", head("GET /heal\u{0}thz HTTP/1.1", host)),
      ("a fragment in the target", head("GET /healthz#a HTTP/1.1", host)),
      ("a target without a slash", head("GET xv1/status HTTP/1.1", host)),
      ("* without OPTIONS", head("GET * HTTP/1.1", host)), ("CONNECT", head("CONNECT 127.0.0.1:80 HTTP/1.1", host)),
      ("absolute form of another scheme", head("GET ftp://127.0.0.1/healthz HTTP/1.1", host)),
      ("absolute form without authority", head("GET http:///healthz HTTP/1.1", host)),
      ("absolute form with a user", head("GET http://a@127.0.0.1/healthz HTTP/1.1", host)),
      ("a version in lower case", head("GET /healthz http/1.1", host)),
      ("a version of one number", head("GET /healthz HTTP/1", host)),
      ("a version of two digits", head("GET /healthz HTTP/1.10", host)),
    ])
    + ["0.9", "1.2", "2.0", "3.0", "9.9"].map {
      HTTPShape(
        name: "HTTP/\($0)", text: head("GET /healthz HTTP/\($0)", host), status: 505,
        code: "http-version-not-supported")
    }

  static let fields =
    malformed([
      ("white space before the colon", head("GET /healthz HTTP/1.1", "Host : 127.0.0.1")),
      ("a tab before the colon", get("X-A\t: b")), ("white space in a name", get("X A: b")),
      ("white space before the first name", head("GET /healthz HTTP/1.1", " \(host)")),
      ("an empty name", get(": b")), ("a name that is no token", get("X(A): b")),
      ("a name with NUL", get("X\u{0}A: b")),
      ("a name beyond ASCII", get("Ä: b")), ("a line without a colon", get("X-A")),
      ("a folded line", get("X-A: b", " c")), ("a line folded by a tab", get("X-A: b", "\tc")),
      ("a folded Content-Length", put("Content-Length: 1", " 0")), ("a line of white space", get("X-A: b", " ")),
      ("a bare CR in a value", get("X-A: b\rc")), ("a bare CR before CR LF", get("X-A: b\r")),
      ("NUL in a value", get("X-A: b\u{0}c")), ("a control character in a value", get("X-A: b\u{1b}c")),
      ("DEL in a value", get("X-A: b\u{7f}c")),
      ("a bare LF behind the request line", "GET /healthz HTTP/1.1\n\(host)\r\n\r\n"),
      ("a bare LF behind a field", "GET /healthz HTTP/1.1\r\n\(host)\n\r\n"),
      ("a bare LF for the empty line", "GET /healthz HTTP/1.1\r\n\(host)\r\n\n"),
      ("a bare LF in a value", get("X-A: b\nTransfer-Encoding: chunked")),
      ("no Host", head("GET /healthz HTTP/1.1", "X-A: b")), ("a second Host", get(host)),
      ("a second Host in lower case", get("host: 127.0.0.1")),
      ("a Host with a path", head("GET / HTTP/1.1", "Host: a/b")),
      ("a Host with a space", head("GET /healthz HTTP/1.1", "Host: 127.0.0.1 a")),
      ("absolute form without Host", head("GET http://127.0.0.1/healthz HTTP/1.1")),
      ("a second Host in HTTP/1.0", head("GET /healthz HTTP/1.0", host, host)),
    ])

  static let lengths =
    malformed([
      ("Content-Length twice", put("Content-Length: 1", "Content-Length: 1")),
      ("Content-Length twice, unequal", put("Content-Length: 1", "Content-Length: 2")),
      ("a list of lengths", put("Content-Length: 1, 1")), ("a length with a sign", put("Content-Length: +1")),
      ("a negative length", put("Content-Length: -1")), ("an empty length", put("Content-Length:")),
      ("a hexadecimal length", put("Content-Length: 0x1")), ("a length with a space", put("Content-Length: 1 1")),
      ("a length with a fraction", put("Content-Length: 1.0")), ("a length in words", put("Content-Length: one")),
      ("both lengths", put("Content-Length: 1", "Transfer-Encoding: chunked", body: "1\r\n7\r\n0\r\n\r\n")),
      ("both lengths, the other way", put("Transfer-Encoding: chunked", "Content-Length: 1", body: "0\r\n\r\n")),
      ("both lengths, another coding", put("Content-Length: 1", "Transfer-Encoding: gzip")),
      ("both lengths of nothing", get("Content-Length: 0", "Transfer-Encoding: chunked")),
      ("chunks in HTTP/1.0", head("PUT \(balance) HTTP/1.0", host, "Transfer-Encoding: chunked", body: "0\r\n\r\n")),
    ])
    + [
      "xchunked", "chunked, chunked", "gzip, chunked", "chunked, gzip", "identity", "gzip", "chunked;a=b", "chunked,",
      "\"chunked\"", "'chunked'", "chunk", "x chunked", "chunked chunked", "",
    ].map {
      HTTPShape(
        name: "Transfer-Encoding: \($0)", text: put("Transfer-Encoding: \($0)", body: "1\r\n7\r\n0\r\n\r\n"),
        status: 501,
        code: "not-implemented")
    } + [
      HTTPShape(
        name: "Transfer-Encoding twice",
        text: put("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body: "1\r\n7\r\n0\r\n\r\n"), status: 501,
        code: "not-implemented"),
      HTTPShape(
        name: "Content-Encoding: gzip", text: put("Content-Encoding: gzip", "Content-Length: 1"), status: 415,
        code: "unsupported-media-type"),
      HTTPShape(
        name: "a length that no number holds", text: put("Content-Length: 99999999999999999999"), status: 413,
        code: "content-too-large"),
    ]

  static let chunks = malformed([
    ("a chunk size with a space behind", chunked("1 \r\n7\r\n0\r\n\r\n")),
    ("a chunk size with a space before", chunked(" 1\r\n7\r\n0\r\n\r\n")),
    ("a chunk size with 0x", chunked("0x1\r\n7\r\n0\r\n\r\n")),
    ("a negative chunk size", chunked("-1\r\n7\r\n0\r\n\r\n")),
    ("an empty chunk size", chunked("\r\n7\r\n0\r\n\r\n")), ("a chunk size in words", chunked("one\r\n7\r\n0\r\n\r\n")),
    ("a chunk size that overflows", chunked("10000000000000001\r\n7\r\n0\r\n\r\n")),
    ("a chunk size of all bits", chunked("ffffffffffffffff\r\n7\r\n0\r\n\r\n")),
    ("a chunk size that ends with LF", chunked("1\n7\r\n0\r\n\r\n")),
    ("a chunk size that ends with CR", chunked("1\r7\r\n0\r\n\r\n")),
    ("a chunk that is longer than its size", chunked("1\r\n77\r\n0\r\n\r\n")),
    ("a chunk that ends with LF", chunked("1\r\n7\n0\r\n\r\n")),
    ("a chunk without an end", chunked("1\r\n70\r\n\r\n")),
    ("a last chunk that ends with LF", chunked("1\r\n7\r\n0\n\r\n")),
    ("a control character in an extension", chunked("1;a=\u{1}\r\n7\r\n0\r\n\r\n")),
    ("a bare LF in an extension", chunked("1;a\nb\r\n7\r\n0\r\n\r\n")),
    ("a trailer without a colon", chunked("1\r\n7\r\n0\r\nX\r\n\r\n")),
    ("a trailer with white space before the colon", chunked("1\r\n7\r\n0\r\nX : y\r\n\r\n")),
    ("a folded trailer", chunked("1\r\n7\r\n0\r\nX: y\r\n z\r\n\r\n")),
    ("a trailer that ends with LF", chunked("1\r\n7\r\n0\r\nX: y\n\r\n")),
  ])

  static let sizes = [
    HTTPShape(
      name: "a target of 9,000 bytes", text: head("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1", host),
      status: 414, code: "uri-too-long"),
    HTTPShape(
      name: "a field of 9,000 bytes", text: get("X-A: \(String(repeating: "a", count: 9000))"), status: 431,
      code: "headers-too-large"),
    HTTPShape(
      name: "200 fields", text: get((0..<200).map { "X-\($0): a" }.joined(separator: "\r\n")), status: 431,
      code: "headers-too-large"),
    HTTPShape(
      name: "300 cookies", text: get("Cookie: \(String(repeating: "a=b; ", count: 300))"), status: 431,
      code: "headers-too-large"),
  ]

  /// Valid but unusual requests.
  static let taken = [
    ("400 parameters", head("GET /healthz?\((0..<400).map { "p\($0)" }.joined(separator: "&")) HTTP/1.1", host)),
    ("empty lines before the request", "\r\n\r\n" + get()), ("white space around values", get("X-A: \t b \t ")),
    ("no white space before a value", get("X-A:b")), ("an empty value", get("X-A:")),
    ("bytes beyond ASCII", get("X-A: ä")),
    ("a quoted comma", get("X-A: \"a, b\"")), ("Content-Encoding: identity", get("Content-Encoding: identity")),
    ("OPTIONS *", head("OPTIONS * HTTP/1.1", host)),
    ("absolute form", head("GET http://127.0.0.1/healthz HTTP/1.1", host)),
    ("absolute form in capitals, with the port", head("GET HTTP://LOCALHOST:80/healthz HTTP/1.1", "Host: localhost")),
    ("a length with zeros before", put("Content-Length: 0001")),
    ("a length with white space", put("Content-Length:  1\t ")),
    ("chunks", chunked("1\r\n7\r\n0\r\n\r\n")), ("chunks with extensions", chunked("01;a;b=\"c\"\r\n7\r\n0;d\r\n\r\n")),
    ("chunks with trailers", chunked("1\r\n7\r\n0\r\nX: y\r\nZ:\r\n\r\n")),
    ("chunked in capitals", put("TRANSFER-ENCODING: CHUNKED", body: "1\r\n7\r\n0\r\n\r\n")),
    ("chunked with white space behind", put("Transfer-Encoding: chunked \t", body: "1\r\n7\r\n0\r\n\r\n")),
  ].map { HTTPShape(name: $0.0, text: $0.1, status: $0.1.hasPrefix("OPTIONS") ? 204 : 200) }

  static let refused = requestLines + fields + lengths + chunks + sizes
}
