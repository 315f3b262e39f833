import Notation

extension Transaction {
  /// Appends what a feed of all commits tells of this one, as a JSON object: the revision that it made, when that was (in
  /// milliseconds since 1970, written as a `date-time` of RFC 3339 in UTC), who wrote, and the operations.
  ///
  /// Operations are written as a transaction takes them over HTTP, and do the same when they are sent again: doubles keep a
  /// fraction or an exponent, and an object that was made in place names itself. Those that cannot be sent so have forms of
  /// their own, which are refused there: `put`, `patch` with a JSON Patch in `patch`, and `mutateSet`.
  package func appendFeedText(revision: Revision, milliseconds: Int64, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    bytes.appendMember("time", RFC3339.dateTime(milliseconds: milliseconds))
    if let writer { bytes.appendMember("writer", writer) }
    bytes.append(contentsOf: ",\"operations\":".utf8)
    bytes.appendList(operations) { $0.appendFeedText(to: &$1) }
    bytes.append(UInt8(ascii: "}"))
  }
}

extension Operation {
  /// Appends `{"op":"set","object":"Account/1",…}`.
  fileprivate func appendFeedText(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"op\":\"".utf8)
    bytes.append(contentsOf: feedName.utf8)
    bytes.append(contentsOf: "\",\"object\":".utf8)
    bytes.appendQuoted(object)
    appendFeedMembers(to: &bytes)
    bytes.append(UInt8(ascii: "}"))
  }

  private var feedName: String {
    switch tag {
    case .jsonPatch: OperationTag.patch.rawValue
    case .removeIndexes, .removeMembers: "remove"
    case let tag: tag.rawValue
    }
  }

  private func appendFeedMembers(to bytes: inout [UInt8]) {
    switch self {
    case .create(_, let body), .put(_, let body), .patch(_, let body):
      bytes.appendName("value")
      body.appendStoredText(.plain, to: &bytes)
    case .set(_, let keyPath, let value):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendName("value")
      value.appendStoredText(.plain, to: &bytes)
    case .jsonPatch(_, let patch):
      bytes.appendName("patch")
      bytes.appendList(patch.operations) { $0.appendFeedText(to: &$1) }
    case .insert(_, let keyPath, let members, let indexes):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendMember("value", members)
      if let indexes { bytes.appendMember("index", indexes) }
    case .removeIndexes(_, let keyPath, let indexes):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendMember("index", indexes)
    case .removeMembers(_, let keyPath, let members):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendMember("value", members.map(NewMember.value))
    case .replace(_, let keyPath, let indexes, let members):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendMember("index", indexes)
      bytes.appendMember("value", members)
    case .mutateSet(_, let keyPath, let mutation, let members):
      bytes.appendMember("keyPath", keyPath)
      bytes.appendMember("operation", mutation.rawValue)
      bytes.appendMember("value", members)
    case .delete: break
    case .willChange(_, let key), .didChange(_, let key): bytes.appendMember("key", key)
    case .require(_, let revision):
      bytes.appendName("revision")
      bytes.appendDecimal(revision)
    }
  }
}

extension JSONPatch.Operation {
  /// Appends the operation as RFC 6902 §4 has it.
  fileprivate func appendFeedText(to bytes: inout [UInt8]) {
    switch self {
    case .add(let path, let value): Self.append("add", path, value, to: &bytes)
    case .remove(let path): Self.append("remove", path, nil, to: &bytes)
    case .replace(let path, let value): Self.append("replace", path, value, to: &bytes)
    case .move(let source, let path): Self.append("move", path, nil, from: source, to: &bytes)
    case .copy(let source, let path): Self.append("copy", path, nil, from: source, to: &bytes)
    case .test(let path, let value): Self.append("test", path, value, to: &bytes)
    }
  }

  private static func append(
    _ name: String, _ path: JSONPointer, _ value: Value?, from source: JSONPointer? = nil, to bytes: inout [UInt8]
  ) {
    bytes.append(contentsOf: "{\"op\":".utf8)
    bytes.appendJSONString(name)
    if let source { bytes.appendMember("from", source.text) }
    bytes.appendMember("path", path.text)
    if let value {
      bytes.appendName("value")
      value.appendStoredText(.plain, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }
}

extension [UInt8] {
  /// Appends a comma and the name of a member, which needs no escapes, with its colon.
  fileprivate mutating func appendName(_ name: String) {
    append(contentsOf: ",\"".utf8)
    append(contentsOf: name.utf8)
    append(contentsOf: "\":".utf8)
  }

  fileprivate mutating func appendMember(_ name: String, _ text: String) {
    appendName(name)
    appendJSONString(text)
  }

  fileprivate mutating func appendMember(_ name: String, _ indexes: [Int]) {
    appendName(name)
    appendList(indexes) { $1.appendDecimal($0) }
  }

  /// An object that is made in place has its name in `@ref`.
  fileprivate mutating func appendMember(_ name: String, _ members: [NewMember]) {
    appendName(name)
    appendList(members) { member, bytes in
      switch member {
      case .value(let value): value.appendStoredText(.plain, to: &bytes)
      case .object(let reference, var body):
        body["@ref"] = nil
        var named: JSONObject = ["@ref": .string(reference.text)]
        for (name, value) in body.members { named[name] = value }
        named.appendStoredText(.plain, to: &bytes)
      }
    }
  }
}
