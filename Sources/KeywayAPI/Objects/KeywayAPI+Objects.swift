internal import HTTPServer
internal import HTTPTypes
internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// Objects and their key paths: reading.
extension KeywayAPI {
  /// The reference of a URL. An id that no object can have names no object.
  func reference(_ entity: String, _ id: String) throws(Problem) -> Reference {
    guard let reference = Reference(entity: entity, id: id) else {
      try Problem.translating { () throws(ModelError) in _ = try store.schema.requireEntity(entity) }
      throw Problem(.unknownObject, "'\(id)' is no id: those have 1 to 128 of A-Z a-z 0-9 . _ ~ -")
    }
    return reference
  }

  func getObject(
    _ entity: String, _ id: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> Answer {
    let reference = try reference(entity, id)
    if try form(of: request) == .stream {
      return try openTopic(reference, keyPaths: nil, request, target)
    }
    try target.allowOnly("keys", "expand")
    let snapshot = store.snapshot
    let record = try Problem.translating { () throws(ModelError) in try snapshot.state.requireRecord(reference) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    guard target.parameters.isEmpty else {
      let tag = target["expand"] == nil ? snapshot.state.revision(of: reference) : nil
      if let tag, try isNotModified(request, tag) { return notModified(tag, snapshot) }
      try ObjectEncoder(state: snapshot.state, entity: record.entity, target: target).append(reference, to: &bytes)
      return .response(json(bytes, at: snapshot.revision, tag: tag))
    }
    let tag = snapshot.state.appendJSON(of: reference, record, to: &bytes)
    if try isNotModified(request, tag) { return notModified(tag, snapshot) }
    return .response(json(bytes, at: snapshot.revision, tag: tag))
  }

  func getKeyPath(
    _ entity: String, _ id: String, _ text: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> Answer {
    let reference = try reference(entity, id)
    let texts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    if try form(of: request) == .stream {
      return try openTopic(reference, keyPaths: texts, request, target)
    }
    try target.allowOnly()
    let snapshot = store.snapshot
    let record = try Problem.translating { () throws(ModelError) in try snapshot.state.requireRecord(reference) }
    var paths: [ModelKeyPath] = []
    for text in texts {
      paths.append(try resolve(text, from: record.entity, of: reference))
    }
    let tag = paths.map { snapshot.state.revision(of: reference, along: $0.keys) }.max() ?? 0
    if try isNotModified(request, tag) { return notModified(tag, snapshot) }
    var bytes: [UInt8] = []
    if paths.count == 1, let path = paths.first {
      snapshot.state.value(of: reference, at: path.keys).appendJSON(to: &bytes)
    } else {
      var members = JSONObject()
      for path in paths { members[path.text] = snapshot.state.value(of: reference, at: path.keys) }
      members.appendJSON(to: &bytes)
    }
    return .response(json(bytes, at: snapshot.revision, tag: tag))
  }

  func resolve(_ text: String, from entity: Entity, of reference: Reference) throws(Problem) -> ModelKeyPath {
    try Problem.translating { () throws(ModelError) in
      do throws(ModelError) {
        return try store.schema.resolve(text, from: entity)
      } catch {
        throw ModelError(error.code, error.detail, object: reference, keyPath: text)
      }
    }
  }

  private func isNotModified(_ request: borrowing Request, _ revision: Revision) throws(Problem) -> Bool {
    guard let text = request.header(.ifNoneMatch) else { return false }
    return try EntityTagCondition(text, header: "If-None-Match")
      .matchesWeakly(Cursor(epoch: store.epoch, revision: revision))
  }

  private func notModified(_ tag: Revision, _ snapshot: Snapshot) -> Answer {
    .response(
      Response(
        status: .notModified,
        fields: [.eTag: entityTag(tag), .keywayCursor: cursor(snapshot.revision)], body: []))
  }

  // MARK: Fetching

  func fetch(_ name: String, _ request: borrowing Request, _ target: Target) throws(Problem) -> Answer {
    let entity = try Problem.translating { () throws(ModelError) in try store.schema.requireEntity(name) }
    try target.allowOnly("limit", "page", "keys", "expand")
    let limit = try limit(target)
    let subject = "\(name)?\(target["keys"] ?? "")&\(target["expand"] ?? "")"
    var word: String?
    let fetch: PageStore.Fetch
    var offset = 0
    if let page = target["page"] {
      (word, fetch, offset) = try pages.fetch(page: page, subject: subject)
    } else {
      let snapshot = store.snapshot
      fetch = PageStore.Fetch(
        snapshot: snapshot.state, revision: snapshot.revision,
        references: extents.references(of: entity, in: snapshot.state),
        subject: subject, expiry: 0)
    }
    let end = min(offset + limit, fetch.references.count)
    let encoder = try ObjectEncoder(state: fetch.snapshot, entity: entity, target: target)
    var bytes = Array("{\"revision\":\(fetch.revision),\"count\":\(fetch.references.count),\"objects\":[".utf8)
    for index in offset..<end {
      if index > offset { bytes.append(UInt8(ascii: ",")) }
      encoder.append(fetch.references[index], to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
    if end < fetch.references.count {
      let word = word ?? pages.keep(fetch.snapshot, fetch.revision, fetch.references, subject: subject)
      bytes.append(contentsOf: ",\"next\":\"\(word).\(end)\"".utf8)
    }
    bytes.append(UInt8(ascii: "}"))
    return .response(json(bytes, at: fetch.revision, tag: nil))
  }

  private func limit(_ target: Target) throws(Problem) -> Int {
    guard let text = target["limit"] else { return pages.limits.objects }
    guard let limit = Int(text), (1...pages.limits.objects).contains(limit) else {
      throw Problem(.malformedQuery, "limit is a whole number from 1 to \(pages.limits.objects)")
    }
    return limit
  }
}
