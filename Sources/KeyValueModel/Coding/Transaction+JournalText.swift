/// The text of a transaction in a journal: `["writer",[["set","Account/1","balance",120],…]]`, with null for no writer. It
/// is the same for the same transaction, and the preconditions, which held, are not in it.
extension Transaction {
  /// Appends the text, from which exactly these operations come back. O(n) in its length.
  package func appendJournalText(to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "["))
    if let writer {
      bytes.appendJSONString(writer)
    } else {
      bytes.append(contentsOf: "null".utf8)
    }
    bytes.append(UInt8(ascii: ","))
    bytes.appendList(operations) { $0.appendJournalText(to: &$1) }
    bytes.append(UInt8(ascii: "]"))
  }

  /// The transaction of a text that `appendJournalText` wrote; throws for everything else, also where there is more in it
  /// than this version knows.
  package init(journalText bytes: [UInt8]) throws(StoredTextError) {
    self = try bytes.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      try Transaction(journalText: buffer)
    }
  }

  /// The same for bytes of somebody else, which are read and not kept.
  package init(journalText bytes: UnsafeBufferPointer<UInt8>) throws(StoredTextError) {
    do throws(JSONError) {
      var parser = JSONParser(bytes, depthLimit: JSONParser.storedDepthLimit, isExact: true)
      self = try parser.parseTransaction()
      try parser.expectEnd()
    } catch {
      throw StoredTextError(error)
    }
  }
}

/// The names of operations in the text.
enum OperationTag: String {
  case create, put, set, patch, jsonPatch, insert, removeIndexes, removeMembers, replace, mutateSet, delete
  case willChange, didChange, require
}

extension Operation {
  /// What stands first in the text of the operation.
  var tag: OperationTag {
    switch self {
    case .create: .create
    case .put: .put
    case .set: .set
    case .patch: .patch
    case .jsonPatch: .jsonPatch
    case .insert: .insert
    case .removeIndexes: .removeIndexes
    case .removeMembers: .removeMembers
    case .replace: .replace
    case .mutateSet: .mutateSet
    case .delete: .delete
    case .willChange: .willChange
    case .didChange: .didChange
    case .require: .require
    }
  }

  /// The object that it names.
  var object: Reference {
    switch self {
    case .create(let object, _), .put(let object, _), .set(let object, _, _), .patch(let object, _),
      .jsonPatch(let object, _), .insert(let object, _, _, _), .removeIndexes(let object, _, _),
      .removeMembers(let object, _, _), .replace(let object, _, _, _), .mutateSet(let object, _, _, _),
      .delete(let object), .willChange(let object, _), .didChange(let object, _), .require(let object, _):
      object
    }
  }

  /// Appends `["set","Account/1",…]`.
  fileprivate func appendJournalText(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "[\"".utf8)
    bytes.append(contentsOf: tag.rawValue.utf8)
    bytes.append(contentsOf: "\",".utf8)
    bytes.appendQuoted(object)
    appendOperands(to: &bytes)
    bytes.append(UInt8(ascii: "]"))
  }

  private func appendOperands(to bytes: inout [UInt8]) {
    switch self {
    case .create(_, let body), .put(_, let body), .patch(_, let body):
      bytes.appendComma()
      body.appendStoredText(.exact, to: &bytes)
    case .set(_, let keyPath, let value):
      bytes.appendOperand(keyPath)
      bytes.appendComma()
      value.appendStoredText(.exact, to: &bytes)
    case .jsonPatch(_, let patch):
      bytes.appendComma()
      bytes.appendList(patch.operations) { $0.appendJournalText(to: &$1) }
    case .insert(_, let keyPath, let members, let indexes):
      bytes.appendOperand(keyPath)
      bytes.appendOperand(members)
      guard let indexes else { return bytes.append(contentsOf: ",null".utf8) }
      bytes.appendOperand(indexes)
    case .removeIndexes(_, let keyPath, let indexes):
      bytes.appendOperand(keyPath)
      bytes.appendOperand(indexes)
    case .removeMembers(_, let keyPath, let members):
      bytes.appendOperand(keyPath)
      bytes.appendComma()
      bytes.appendList(members) { $0.appendStoredText(.exact, to: &$1) }
    case .replace(_, let keyPath, let indexes, let members):
      bytes.appendOperand(keyPath)
      bytes.appendOperand(indexes)
      bytes.appendOperand(members)
    case .mutateSet(_, let keyPath, let mutation, let members):
      bytes.appendOperand(keyPath)
      bytes.appendOperand(mutation.rawValue)
      bytes.appendOperand(members)
    case .delete: break
    case .willChange(_, let key), .didChange(_, let key): bytes.appendOperand(key)
    case .require(_, let revision):
      bytes.appendComma()
      bytes.appendDecimal(revision)
    }
  }
}

extension [UInt8] {
  /// Appends a comma and a string.
  mutating func appendOperand(_ text: String) {
    appendComma()
    appendJSONString(text)
  }

  fileprivate mutating func appendOperand(_ indexes: [Int]) {
    appendComma()
    appendList(indexes) { $1.appendDecimal($0) }
  }

  /// An object that is made in place is `{"@@made":["Account/2",{…}]}`.
  fileprivate mutating func appendOperand(_ members: [NewMember]) {
    appendComma()
    appendList(members) { member, bytes in
      switch member {
      case .value(let value): value.appendStoredText(.exact, to: &bytes)
      case .object(let reference, let body):
        bytes.append(contentsOf: JSONParser.madeMember.utf8)
        bytes.appendQuoted(reference)
        bytes.appendComma()
        body.appendStoredText(.exact, to: &bytes)
        bytes.append(contentsOf: "]}".utf8)
      }
    }
  }
}
