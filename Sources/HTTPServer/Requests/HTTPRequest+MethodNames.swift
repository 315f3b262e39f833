import Glibc
import HTTPTypes

extension HTTPRequest.Method {
  /// The method of a request line, without a new string for the common ones; `nil` if it is not a token.
  init?(requestLine name: UnsafePointer<CChar>) {
    switch name[0] {
    case Self.letter("G") where strcmp(name, "GET") == 0: self = .get
    case Self.letter("P") where strcmp(name, "PATCH") == 0: self = .patch
    case Self.letter("P") where strcmp(name, "PUT") == 0: self = .put
    case Self.letter("P") where strcmp(name, "POST") == 0: self = .post
    case Self.letter("D") where strcmp(name, "DELETE") == 0: self = .delete
    case Self.letter("H") where strcmp(name, "HEAD") == 0: self = .head
    case Self.letter("O") where strcmp(name, "OPTIONS") == 0: self = .options
    default:
      guard let method = Self(String(cString: name)) else { return nil }
      self = method
    }
  }

  private static func letter(_ scalar: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: scalar.value) }
}
