import HTTPServer
import HTTPTypes

/// A query parameter, a header or a part of a path.
package struct ParameterDescription: Sendable {
  /// Its name, as it is sent.
  let name: String
  /// What it says, as a sentence.
  let meaning: String
  /// What its values are like.
  let schema: SchemaForm

  package init(_ name: String, _ schema: SchemaForm, _ meaning: String) {
    self.name = name
    self.schema = schema
    self.meaning = meaning
  }

  /// Of any text.
  package init(_ name: String, _ meaning: String) { self.init(name, .text, meaning) }
}

// MARK: - Query parameters

extension ParameterDescription {
  static let keys = ParameterDescription("keys", "The keys that the answer has, joined by commas.")
  static let keysAndPaths = ParameterDescription("keys", "The keys and key paths that a row has, joined by commas.")
  static let expand = ParameterDescription(
    "expand", "Relationships, joined by commas, in whose place the objects stand that they name.")
  static let filter = ParameterDescription("filter", "A condition in CEL that the objects meet.")
  static let sort = ParameterDescription("sort", "Key paths joined by commas, a - in front for descending order.")
  static let section = ParameterDescription("section", "The key path that sections the rows.")
  static let aggregate = ParameterDescription(
    "aggregate", "Operators joined by commas, such as @count,@sum.salary, for what all rows come to.")
  static let limit = ParameterDescription(
    "limit", .count, "The most rows, of a fetch on a page; 0 for what all rows come to alone.")
  static let transactions = ParameterDescription("limit", .whole(from: 1), "The most transactions.")
  static let page = ParameterDescription(
    "page", "The page to give: `next` of the answer before. The rest may be left out.")
  static let entities = ParameterDescription(
    "entities", "Entities joined by commas; the objects of those that extend them come too.")
  static let indexes = ParameterDescription(
    "index", .text(matching: "^-?[0-9]+(,-?[0-9]+)*$"), "Places of members, joined by commas.")
  static let members = ParameterDescription("object", "References of members, joined by commas.")
  static let values = ParameterDescription(
    "value", "A JSON value, or an array of them: members of a to-many of values.")
  static let options = ParameterDescription(
    "options", "What changes carry: any of new, old, initial, prior, joined by commas, or none.")
  static let context = ParameterDescription("context", "A text that comes back with every change.")
  static let since = ParameterDescription("since", "The cursor to go on from.")
  private static let lastEventIDInQuery = ParameterDescription(
    "lastEventId", "The same, from an EventSource polyfill that cannot send Last-Event-ID; it wins over since.")
  static let overflow = ParameterDescription(
    "overflow", .word(["coalesce", "disconnect"]), "What becomes of a stream whose subscriber is slow.")
  /// What every stream takes.
  static let ofStreams: [ParameterDescription] = [.since, .lastEventIDInQuery, .overflow]
}

// MARK: - Headers of requests

extension ParameterDescription {
  private init(_ name: HTTPField.Name, _ schema: SchemaForm, _ meaning: String) {
    self.init(name.rawName, schema, meaning)
  }

  private init(_ name: HTTPField.Name, _ meaning: String) { self.init(name.rawName, .text, meaning) }

  static let requestID = ParameterDescription(
    RequestID.fieldName, .text(matching: "^[!-~]{1,128}$"), "The id of the request, which the answer and the log have.")
  static let seen = ParameterDescription(
    .keywayCursor, "A cursor: the answer is at least as new as it.")
  static let ifMatch = ParameterDescription(
    .ifMatch, "An ETag of the same URL: 412 where what is there is another version.")
  static let ifNoneMatch = ParameterDescription(
    .ifNoneMatch, "An ETag of the same URL: 304 to a GET where it is still that version; * with a PUT only creates.")
  static let lastEventID = ParameterDescription(
    .lastEventID, "The last id that a stream gave: it goes on from there.")
  static let writer = ParameterDescription(
    .keywayWriter, .text(matching: "^[!-~]{1,128}$"), "A name that the events carry that the write causes.")
  static let lifetime = ParameterDescription(
    .keywayLifetime, .text(matching: "^([1-9][0-9]*|none|stream=.+)$"),
    "How long the object lasts: seconds, stream=NAME, or none for ever.")
  static let idempotencyKey = ParameterDescription(
    .idempotencyKey, .text(matching: "^[!#-~]{1,255}$"), "Makes a retried POST apply once.")
  static let range = ParameterDescription(.range, "The part of a file to give.")
  static let ifRange = ParameterDescription(.ifRange, "The ETag of the file that the range is of.")
}

// MARK: - Headers of answers

extension ParameterDescription {
  /// What a cursor is like.
  static let cursorPattern = "^[a-z0-9]+-[0-9]+$"
  static let cursor = ParameterDescription(
    .keywayCursor, .text(matching: cursorPattern), "The state that the answer shows, or the commit of a write.")
  static let answeredID = ParameterDescription(
    RequestID.fieldName, .text(matching: "^[!-~]{1,128}$"), "The id of the request.")
  static let tag = ParameterDescription(.eTag, .text(matching: #"^"[!#-~]+"$"#), "The version of what the URL names.")
  static let location = ParameterDescription(.location, "Where it is.")
  static let link = ParameterDescription(.link, "The next page, with rel=\"next\" (RFC 8288).")
  static let allow = ParameterDescription(.allow, "The methods of the resource.")
  static let acceptPatch = ParameterDescription(.acceptPatch, "The media types that a PATCH takes.")
  static let retryAfter = ParameterDescription(.retryAfter, .text(matching: "^[0-9]+$"), "Seconds to wait.")
  static let challenge = ParameterDescription(.wwwAuthenticate, "Bearer, with what is wrong with the token.")
  static let replayed = ParameterDescription(
    .idempotencyReplayed, .word(["true"]), "The answer is that of an earlier request with the same key.")
  static let cookie = ParameterDescription(.setCookie, "The session cookie, or its end.")
  static let accept = ParameterDescription(.accept, "The media types that there are, or that a body may have.")
  static let acceptEncoding = ParameterDescription(.acceptEncoding, "The encodings that a body may have.")
  static let contentRange = ParameterDescription(.contentRange, "Which part of the file it is.")
}
