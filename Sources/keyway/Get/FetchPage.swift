import KeyValueModel
import KeywayClient
import OrderedCollections

/// One page of a fetch.
struct FetchPage: Sendable {
  /// The objects of this page.
  let objects: [Value]
  /// The revision whose state all pages of the fetch show.
  let revision: Int64
  /// How many objects all pages have together; nil where the server does not say.
  let count: Int64?
  /// The name of the next page; nil on the last.
  let next: String?
  /// All other members of the answer, in their order, `revision` and `count` among them.
  let others: JSONObject

  /// What a server answers; nil where it is no page.
  init?(_ response: ClientResponse) {
    guard var body = try? Value(json: response.body, depthLimit: ImportLimits.jsonDepth).asObject,
      let objects = body["objects"]?.asArray, let revision = body["revision"]?.asInteger
    else { return nil }
    self.objects = objects
    self.revision = revision
    count = body["count"]?.asInteger
    next = body["next"]?.asString
    body["objects"] = nil
    body["next"] = nil
    others = body
  }
}

/// All pages of a fetch, one after the other.
struct PagedFetch: Sendable {
  let client: Client
  /// The path of the first page, with its parameters.
  let path: String

  /// Gives each page to `body` as it comes, whole pages of one revision. Throws a `Problem` with the code
  /// `page-expired` where the state of the first page is no longer kept, and what `body` throws.
  func forEach(_ body: (FetchPage) throws -> Void) async throws {
    var next: String?
    repeat {
      try Task.checkCancellation()
      let path = ResourcePath.adding([("page", next)], to: path)
      let response = try await client.send("GET", path, headers: ["Accept": "application/json"])
      guard let page = FetchPage(response) else {
        throw CommandFailure("the server does not answer \(path) with objects")
      }
      try body(page)
      next = page.next
    } while next != nil
  }
}
