import CPostgres

/// What may be said of the address of a database: where it is, without user and password.
package enum PostgresAddress {
  private static let scheme = "postgres://"

  /// The values that an address gives to libpq's keywords; nil where libpq cannot read it.
  private static func values(of address: String) -> [String: String]? {
    guard let options = PQconninfoParse(address, nil) else { return nil }
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }

  /// A name of the database at an address, as libpq reads it: `postgres://a,b,c/keyway`.
  package static func name(of address: String) -> String {
    guard let values = values(of: address) else { return scheme }
    let host = values["host"] ?? values["hostaddr"] ?? ""
    let port = values["port"].map { ":\($0)" } ?? ""
    return "\(scheme)\(host)\(port)/\(values["dbname"] ?? "")"
  }

  /// The address as it may be shown to people: with `***` for each password in it, and for all of it where libpq cannot
  /// read it.
  package static func masked(_ address: String) -> String {
    let patterns = [
      /^(postgres(?:ql)?:\/\/[^:@\/?#]*):[^@\/]*@/, /((?:^|[?&\s])(?:ssl)?password\s*=\s*)(?:'(?:\\.|[^'])*'|[^&\s]*)/,
    ]
    var masked = address.replacing(patterns[0]) { "\($0.1):***@" }
    masked = masked.replacing(patterns[1]) { "\($0.1)***" }
    // A keyword may be written in other ways too.
    guard let shown = values(of: masked) else { return "***" }
    let secrets = [shown["password"], shown["sslpassword"]].compactMap(\.self)
    return secrets.allSatisfy { $0 == "***" } ? masked : "***"
  }

  /// True if libpq can read the address.
  static func isReadable(_ address: String) -> Bool { values(of: address) != nil }

  /// Whether a text is such a name.
  package static func isName(_ text: String) -> Bool { text.hasPrefix(scheme) }
}
