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
  ) throws(Problem) -> HandlerResponse {
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
      var encoder = try ObjectEncoder(state: snapshot.state, entity: record.entity, target: target, limits: limits)
      try encoder.append(reference, to: &bytes)
      return .response(json(bytes, at: snapshot.revision, tag: tag))
    }
    let tag = snapshot.state.appendJSON(of: reference, record, to: &bytes)
    if try isNotModified(request, tag) { return notModified(tag, snapshot) }
    return .response(json(bytes, at: snapshot.revision, tag: tag))
  }

  func getKeyPath(
    _ entity: String, _ id: String, _ text: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    let texts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    if try form(of: request) == .stream {
      return try openTopic(reference, keyPaths: texts, request, target)
    }
    try target.allowOnly()
    let snapshot = store.snapshot
    let record = try Problem.translating { () throws(ModelError) in try snapshot.state.requireRecord(reference) }
    var paths: [ModelKeyPath] = []
    var budget = ResponseBudget(limits)
    for text in texts {
      let path = try resolve(text, from: record.entity, of: reference)
      try budget.spend(on: path, of: reference, in: snapshot.state)
      paths.append(path)
    }
    let tag = paths.map { snapshot.state.revision(of: reference, along: $0) }.max() ?? 0
    if try isNotModified(request, tag) { return notModified(tag, snapshot) }
    var bytes: [UInt8] = []
    if paths.count == 1, let path = paths.first {
      snapshot.state.value(of: reference, at: path).appendJSON(to: &bytes)
    } else {
      var members = JSONObject()
      for path in paths { members[path.text] = snapshot.state.value(of: reference, at: path) }
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

  private func notModified(_ tag: Revision, _ snapshot: Snapshot) -> HandlerResponse {
    .response(
      Response(
        status: .notModified,
        fields: [.eTag: entityTag(tag), .keywayCursor: cursor(snapshot.revision)], body: []))
  }
}
