import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway get`: what a resource is now.
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

      The output is JSON; the objects of an entity are columns on a terminal. They come with all their pages, unless
      --limit, limit= or page= asks for some of them.
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "A key path of the object.")
  var keyPath: String?

  @OptionGroup var query: QueryOptions

  @Flag(help: "JSON, also on a terminal.")
  var json = false

  @OptionGroup var options: ClientOptions

  /// The path of the resource with its parameters.
  var path: String {
    ResourcePath.adding(query.parameters, to: ResourcePath.path(resource, keyPath: keyPath))
  }

  /// Whether the resource comes by the page, and all pages are wanted.
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
      // What all objects come to has no columns.
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

  /// The columns on the terminal, page by page.
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

  /// Prints all pages as one answer, as the server gives it where everything fits on a page: never more than one page
  /// is in memory.
  private func printJSON(_ client: Client) async throws {
    var output = PagedJSON()
    do {
      try await PagedFetch(client: client, path: path).forEach { StandardOutput.write(output.text(for: $0)) }
    } catch let problem as Problem where problem.status == 410 {
      throw CommandFailure("\(problem)\nwhat was written is not whole: the server keeps a state for fetch.pageSeconds")
    }
  }
}
