import CPostgres

/// What may be said of the address of a database: where it is, without user and password.
package enum PostgresAddress {
  private static let scheme = "postgres://"

  /// A name of the database at an address, as libpq reads it: `postgres://a,b,c/keyway`.
  package static func name(of address: String) -> String {
    guard let options = PQconninfoParse(address, nil) else { return scheme }
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    let host = values["host"] ?? values["hostaddr"] ?? ""
    let port = values["port"].map { ":\($0)" } ?? ""
    return "\(scheme)\(host)\(port)/\(values["dbname"] ?? "")"
  }

  /// Whether a text is such a name.
  package static func isName(_ text: String) -> Bool { text.hasPrefix(scheme) }
}
