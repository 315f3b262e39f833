import Foundation

/// The paths of the server's resources, from what a user types.
package enum ResourcePath {
  /// The path of what `text` names: a path as it stands when it begins with a slash, else something under
  /// `/v1/objects` (`Account/1`, `Account?limit=5`); with a key path, of that property of it.
  package static func path(_ text: String, keyPath: String? = nil) -> String {
    // A `%` that two hexadecimal digits follow stays: it is encoded already.
    let plain = text.replacing(/%(?![0-9A-Fa-f]{2})/, with: "%25")
    var path = encoded(text.hasPrefix("/") ? plain : "/v1/objects/" + plain, also: "%/?&=")
    guard let keyPath else { return path }
    let query = path.firstIndex(of: "?") ?? path.endIndex
    path.insert(contentsOf: "/" + encoded(keyPath), at: query)
    return path
  }

  /// A path with more parameters behind it; nil values are left out.
  package static func adding(_ parameters: [(name: String, value: String?)], to path: String) -> String {
    var path = path
    for case (let name, let value?) in parameters {
      path += path.contains("?") ? "&" : "?"
      path += encoded(name) + "=" + encoded(value)
    }
    return path
  }

  /// Text with everything percent-encoded that RFC 3986 does not allow in a path segment or a parameter, but for the
  /// characters in `also`.
  private static func encoded(_ text: String, also: String = "") -> String {
    let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    let allowed = CharacterSet(charactersIn: letters + "0123456789-._~@:,!$'()*;" + also)
    return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text
  }
}
