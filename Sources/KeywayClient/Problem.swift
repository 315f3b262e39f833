import KeyValueModel

/// A response that refuses a request: a problem document (RFC 9457) where the server sends one, else the bare status.
package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
  /// The status code of the response.
  package var status: Int
  /// The last part of `type`: `undefined-key`. Nil where the response was no problem document.
  package var code: String?
  /// The short, constant text.
  package var title: String?
  /// What is wrong with this request.
  package var detail: String?
  /// The object that the problem is about.
  package var object: String?
  /// The key path that the problem is about.
  package var keyPath: String?
  /// The index of the operation in a transaction.
  package var operation: Int64?
  /// The seconds after which the client may try again.
  package var retryAfterSeconds: Int?

  /// What a response with an error status says.
  package init(_ response: ClientResponse) {
    status = response.status
    retryAfterSeconds = response.header("Retry-After").flatMap { Int($0) }
    guard let members = try? Value(json: response.body).asObject else { return }
    code = members["type"]?.asString?.split(separator: "/").last.map(String.init)
    title = members["title"]?.asString
    detail = members["detail"]?.asString
    object = members["object"]?.asString
    keyPath = members["keyPath"]?.asString
    operation = members["operation"]?.asInteger
  }

  /// The problem in one line: `404 undefined-key: Account has no key balnce (Account/1 balnce)`.
  package var description: String {
    var text = String(status)
    if let code { text += " \(code)" }
    if let clause = detail ?? title { text += ": \(clause)" }
    let place = [object, keyPath, operation.map { "operation \($0)" }].compactMap(\.self)
    if !place.isEmpty { text += " (\(place.joined(separator: " ")))" }
    return text
  }
}
