/// The addresses that other nodes may give as their own. `nodes.urls`.
///
/// A node says itself where it is reached, and requests of clients are sent there, with what says who asks. So nothing
/// is sent to an address that an operator has not written down. Addresses are compared as RFC 3986 §6.2 normalizes
/// them: without regard to case, with the scheme's port where none is given, and without a slash at the end.
struct NodeURLs: Sendable {
  private let urls: Set<String>

  /// Creates the list. Throws a fault that names the entry that is not an address.
  init(_ texts: [String] = []) throws(NodeFault) {
    var urls: Set<String> = []
    for text in texts {
      do throws(NodeFault) {
        urls.insert(try Self.normalized(text))
      } catch {
        throw NodeFault("nodes.urls: \(error.reason)", isUnsent: true)
      }
    }
    self.urls = urls
  }

  /// Returns true if an address that a node gives as its own is listed.
  func contains(_ url: String) -> Bool {
    guard !urls.isEmpty, let url = try? Self.normalized(url) else { return false }
    return urls.contains(url)
  }

  private static func normalized(_ text: String) throws(NodeFault) -> String {
    guard !text.hasPrefix("unix:") else { return try NodeAddress(text).description }
    var url = text.lowercased()
    _ = try NodeAddress(url)
    if url.hasSuffix("/") { url.removeLast() }
    guard let range = url.firstRange(of: "://") else { return url }
    // Behind the brackets of an IPv6 address a colon can only stand before the port.
    let host = url[range.upperBound...]
    let hasPort = host.dropFirst(host.hasPrefix("[") ? host.prefix { $0 != "]" }.count : 0).contains(":")
    return hasPort ? url : url + (url.hasPrefix("https:") ? ":443" : ":80")
  }
}
