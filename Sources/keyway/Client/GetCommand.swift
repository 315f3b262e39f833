import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient
import OrderedCollections

/// Implements `keyway get`: prints the present state of a resource.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Prints an object, the value of a key path, the objects of an entity, or any other resource.",
    discussion: """
      keyway get Account/1
      keyway get Account/1 owner.fullName
      keyway get Department/1 employees.@sum.salary
      keyway get Employee --filter 'salary > 1000' --sort -salary --limit 20
      keyway get 'Employee?filter=salary > 1000&sort=-salary'
      keyway get /v1/status

      The output is JSON; on a terminal, the objects of an entity are in columns. All pages are printed, unless --limit,
      limit= or page= selects some.
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "A key path of the object.")
  var keyPath: String?

  @OptionGroup var query: QueryOptions

  @Flag(help: "Print JSON even on a terminal.")
  var json = false

  @OptionGroup var options: ClientOptions

  /// The path of the resource, with its parameters.
  var path: String {
    ResourcePath.adding(query.parameters, to: ResourcePath.path(resource, keyPath: keyPath))
  }

  /// True if the resource comes in pages, and all of them are requested.
  var wantsAllPages: Bool {
    guard QueryOptions.isEntity(path) else { return false }
    let parameters = path.split(separator: "?", maxSplits: 1).dropFirst().flatMap { $0.split(separator: "&") }
    return !parameters.contains { $0.hasPrefix("limit=") || $0.hasPrefix("page=") }
  }

  func validate() throws { try query.check(resource, path: path) }

  func run() async throws {
    let client = try options.client()
    try await print(client)
    if QueryOptions.isEntity(path) { await client.remarkAnonymity() }
  }

  private func print(_ client: Client) async throws {
    let isTable = StandardOutput.isScreen && !json && QueryOptions.isEntity(path)
    guard isTable || wantsAllPages else {
      let response = try await client.send("GET", path, headers: ["Accept": "application/json"])
      return StandardOutput.text(response.text)
    }
    if isTable { try await printColumns(client) } else { try await printJSON(client) }
  }

  // MARK: Columns

  private func printColumns(_ client: Client) async throws {
    guard wantsAllPages else {
      let response = try await client.send("GET", path, headers: ["Accept": "application/json"])
      // Aggregates of all objects have no columns.
      guard let page = FetchPage(response), !page.objects.isEmpty || page.count == 0 else {
        return StandardOutput.text(response.text)
      }
      var table = Table()
      table.add(page)
      return table.end()
    }
    var table = Table()
    try await PagedFetch(client: client, path: path).forEach { table.add($0) }
    table.end()
  }

  /// Prints objects in columns on the terminal, page by page.
  private struct Table {
    private var columns: ObjectColumns?
    private var shown = 0
    private var count: Int64?

    mutating func add(_ page: FetchPage) {
      let columns = self.columns ?? ObjectColumns(for: page.objects, columns: TerminalSize.current.columns)
      if self.columns == nil, !page.objects.isEmpty { StandardOutput.line(columns.heading) }
      self.columns = columns
      for line in columns.lines(for: page.objects) { StandardOutput.line(line) }
      shown += page.objects.count
      count = page.count
    }

    func end() {
      if shown == 0 { StandardOutput.line(StyledLine("no objects", .dim)) }
      if let remark = columns?.remark(shown: shown, of: count) { StandardOutput.line(remark) }
    }
  }

  // MARK: JSON

  /// Prints all pages as one JSON text, like the response of a server where everything fits on a page. Only one page at
  /// a time is in memory.
  private func printJSON(_ client: Client) async throws {
    var output = PagedJSON()
    do {
      try await PagedFetch(client: client, path: path).forEach { StandardOutput.write(output.text(for: $0)) }
    } catch let problem as Problem where problem.status == 410 {
      throw CommandFailure("\(problem)\nthe output is incomplete: the server keeps a state for fetch.pageSeconds")
    }
  }
}

/// Formats objects in columns for a terminal.
///
/// The first objects determine the columns and their widths. Objects of later pages are fitted into them.
struct ObjectColumns: Sendable {
  private let layout: ColumnLayout

  /// Creates columns for these objects and similar ones: `@ref`, and the keys that they have.
  init(for objects: [Value], columns: Int) {
    let rows = Self.rows(of: objects)
    var names = OrderedSet<String>()
    for row in rows { names.formUnion(row.value.members.keys) }
    for name in ["@ref", "@revision"] { names.remove(name) }
    layout = ColumnLayout(["@ref"] + names, rows: rows, columns: columns)
  }

  /// The heading, with the names of the keys.
  var heading: StyledLine { StyledLine(layout.heading, .underlined) }

  /// The number of hidden keys.
  var hiddenCount: Int { layout.hiddenCount }

  /// Returns a line for each object.
  func lines(for objects: [Value]) -> [StyledLine] {
    Self.rows(of: objects).map { StyledLine(layout.text(of: $0)) }
  }

  /// Returns the remark below the objects: the number of shown and of all objects if some are missing, and the number
  /// of hidden columns. Nil if nothing is left out.
  func remark(shown: Int, of count: Int64?) -> StyledLine? {
    var clauses: [String] = []
    if let count, count > shown {
      clauses.append("\(ImportSummary.grouped(shown)) of \(ImportSummary.grouped(Int(clamping: count))) objects")
    }
    if hiddenCount > 0 {
      clauses.append("\(hiddenCount) \(hiddenCount == 1 ? "column" : "columns") hidden; --keys selects those to show")
    }
    return clauses.isEmpty ? nil : StyledLine("… " + clauses.joined(separator: ", "), .dim)
  }

  private static func rows(of objects: [Value]) -> [LiveRow] {
    objects.compactMap { object in
      guard let value = object.asObject, let reference = value["@ref"]?.asString.flatMap({ Reference($0) }) else {
        return nil
      }
      return LiveRow(reference: reference, value: value)
    }
  }
}

/// Joins the pages of a fetch into one JSON text: `{"revision":…,"count":…,"objects":[…]}`.
struct PagedJSON: Sendable {
  private var isFirst = true
  private var isEmpty = true

  /// Returns the text of the next page. The last page closes the JSON, with a line break.
  mutating func text(for page: FetchPage) -> String {
    var text = ""
    if isFirst {
      text = "{" + members(of: page) { Self.head.contains($0) } + ",\"objects\":["
      isFirst = false
    }
    for object in page.objects {
      if !isEmpty { text += "," }
      isEmpty = false
      text += object.json
    }
    guard page.next == nil else { return text }
    let rest = members(of: page) { !Self.head.contains($0) }
    return text + "]" + (rest.isEmpty ? "" : "," + rest) + "}\n"
  }

  /// The members before the objects, in the order of a server. All others follow the objects.
  private static let head: Set<String> = ["revision", "count", "total", "failed"]

  private func members(of page: FetchPage, where isIncluded: (String) -> Bool) -> String {
    page.others.members.filter { isIncluded($0.key) }.map { Value.string($0.key).json + ":" + $0.value.json }
      .joined(separator: ",")
  }
}

/// One page of a fetch.
struct FetchPage: Sendable {
  /// The objects of this page.
  let objects: [Value]
  /// The revision whose state all pages of the fetch show.
  let revision: Int64
  /// The number of objects on all pages, or nil if the server does not return it.
  let count: Int64?
  /// The name of the next page, or nil on the last.
  let next: String?
  /// All other members of the response, in their order, including `revision` and `count`.
  fileprivate let others: JSONObject

  /// Parses the response of a server. Nil if it is not a page.
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

/// Reads all pages of a fetch, one after the other.
struct PagedFetch: Sendable {
  let client: Client
  /// The path of the first page, with its parameters.
  let path: String

  /// Passes each page to `body` as it arrives, all of one revision. Throws a `Problem` with the code `page-expired` if
  /// the state of the first page is no longer kept, and what `body` throws.
  func forEach(_ body: (FetchPage) throws -> Void) async throws {
    var next: String?
    repeat {
      try Task.checkCancellation()
      let path = ResourcePath.adding([("page", next)], to: path)
      let response = try await client.send("GET", path, headers: ["Accept": "application/json"])
      guard let page = FetchPage(response) else {
        throw CommandFailure("the response to \(path) has no objects")
      }
      try body(page)
      next = page.next
    } while next != nil
  }
}
