import Support

/// Operations that are applied together or not at all, and make one revision.
public struct Transaction: Sendable {
  /// The operations, in order.
  public var operations: [Operation]
  /// The conditions on the state before the transaction.
  public var preconditions: [Precondition]
  /// The name of the writer; observers receive it and recognize their own changes by it.
  public var writer: String?
  /// The `sub` of the identity that wrote it, or nil if the writer is anonymous or unknown; the journal keeps it.
  package var author: String?
  /// The results of preparing the operations, by index; operations beyond the end were not prepared.
  var preparations: [Preparation] = []
  /// The text of the transaction in a journal, if `prepare` has written it; the operations must not change after that.
  private var journalText: [UInt8]?
  /// The access of the writer, or nil if no rules are asked.
  package var access: WriteAccess?

  /// Creates a transaction of these operations.
  public init(_ operations: [Operation], preconditions: [Precondition] = [], writer: String? = nil) {
    self.operations = operations
    self.preconditions = preconditions
    self.writer = writer
  }
}

// MARK: - Preparation before the single writer

extension Transaction {
  /// Checks the values of attributes, writes the text for the journal, and applies JSON Patches to the objects as they
  /// are in `state`: the work that can be done on the calling thread before the transaction reaches the single writer.
  ///
  /// If an object has changed by the time of the write, the writer applies the patch again. O(n) in the size of the
  /// operations; worthwhile if that is large.
  package mutating func prepare(in state: borrowing ModelState, limits: TransactionLimits) {
    var preparations: [Preparation] = []
    for operation in operations { preparations.append(Self.preparation(of: operation, in: state, limits)) }
    self.preparations = preparations
    var text: [UInt8] = []
    appendJournalText(to: &text)
    journalText = text
  }

  private static func preparation(
    of operation: Operation, in state: borrowing ModelState, _ limits: TransactionLimits
  ) -> Preparation {
    guard let entity = state.schema.entity(of: operation.reference) else { return .none }
    let reference = operation.reference
    var check = ValueCheck(schema: state.schema)
    switch operation {
    case .create(_, let body), .put(_, let body): check.look(at: body, of: entity, reference)
    case .patch(_, let body): check.look(at: body, of: entity, reference, isMerged: true)
    case .set(_, let keyPath, let value):
      guard let key = check.key(keyPath, from: entity) else { return .none }
      check.look(at: value, for: key, of: reference, keyPath)
    case .insert(_, let keyPath, let members, _), .replace(_, let keyPath, _, let members),
      .mutateSet(_, let keyPath, _, let members):
      guard let key = check.key(keyPath, from: entity), case .toMany(let toMany) = key.kind else { return .none }
      check.look(at: members, of: toMany, key, owner: keyPath == key.name ? reference : nil)
    case .jsonPatch(_, let patch):
      return PreparedPatch(patch, of: reference, in: state, limits).map(Preparation.patched) ?? .none
    case .removeIndexes, .removeMembers, .delete, .willChange, .didChange, .require, .lifetime:
      return .none
    }
    return check.outcome
  }
}

// MARK: - In the journal

/// The text of a transaction in a journal: `["writer",[["set","Account/1","balance",120],…],"sub"]`, with null for no
/// writer, and without the last member if no identity wrote it. Equal transactions have equal texts. Preconditions are
/// left out, since they held.
extension Transaction {
  /// Appends the text, which `init(journalText:)` reads back as exactly these operations. O(n) in its length.
  package func appendJournalText(to bytes: inout [UInt8]) {
    if let journalText { return bytes.append(contentsOf: journalText) }
    bytes.append(UInt8(ascii: "["))
    if let writer {
      bytes.appendJSONString(writer)
    } else {
      bytes.append(contentsOf: "null".utf8)
    }
    bytes.appendComma()
    bytes.appendList(operations) { $0.appendJournalText(to: &$1) }
    if let author {
      bytes.appendComma()
      bytes.appendJSONString(author)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Creates the transaction from a text that `appendJournalText` wrote. Throws for any other text, including one with
  /// more than this version supports.
  package init(journalText bytes: [UInt8]) throws(StoredTextError) {
    self = try bytes.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      try Transaction(journalText: buffer)
    }
  }

  /// Creates the transaction from bytes that belong to the caller and are not retained.
  package init(journalText bytes: UnsafeBufferPointer<UInt8>) throws(StoredTextError) {
    var parser = StoredTextParser(bytes)
    self = try parser.parseTransaction()
    try parser.expectEnd()
  }
}

// MARK: - In the feed

extension Transaction {
  /// Appends the transaction as a JSON object for the feed of commits: its revision, its time (given in milliseconds
  /// since 1970, written as a `date-time` of RFC 3339 in UTC), its writer, the `sub` of the identity that wrote it as
  /// `by`, and the operations.
  ///
  /// Operations are written as a transaction takes them over HTTP, and have the same effect when they are sent again:
  /// doubles keep a fraction or an exponent, and an object that was created in place names itself. Operations that
  /// cannot be sent in this way have forms of their own, which the server refuses: `put`, `patch` with a JSON Patch in
  /// `patch`, `mutateSet`, and `lifetime`, which follows the write whose request gave it and names no stream.
  package func appendFeedText(revision: Revision, milliseconds: Int64, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    bytes.appendName("time")
    bytes.appendJSONString(RFC3339.dateTime(milliseconds: milliseconds))
    if let writer {
      bytes.appendName("writer")
      bytes.appendJSONString(writer)
    }
    if let author {
      bytes.appendName("by")
      bytes.appendJSONString(author)
    }
    bytes.appendName("operations")
    bytes.appendList(operations) { $0.appendFeedText(to: &$1) }
    bytes.append(UInt8(ascii: "}"))
  }
}

/// A condition for a transaction to be applied at all (RFC 9110 §13.1).
public enum Precondition: Sendable {
  /// Neither the object nor what its computed keys read has changed since; `unknown-object` if it does not exist.
  case unchangedObject(Reference, since: Revision)
  /// The objects along the key path have not changed since; `unknown-object` if the first one does not exist.
  case unchangedKeyPath(Reference, String, since: Revision)
  /// The object, or what the key path reads, is not as it was at any of these revisions, or does not exist.
  case differs(Reference, keyPath: String?, from: Set<Revision>)
  /// The closure returns true for the state before the transaction; the reference is the object that it concerns.
  case holds(Reference, @Sendable (borrowing ModelState) -> Bool)
  /// A condition that never holds, since what is written is not an object that could have existed before.
  case impossible
  /// The object exists.
  case exists(Reference)
  /// The object does not exist.
  case absent(Reference)
}

/// Writing operations: in the form `exact` for the journal, in the form `plain` for the feed.
extension Operation {
  /// Appends `["set","Account/1","balance",120]` for the journal.
  fileprivate func appendJournalText(to bytes: inout [UInt8]) {
    let (kind, operands) = form
    bytes.append(contentsOf: "[\"".utf8)
    bytes.append(contentsOf: kind.rawValue.utf8)
    bytes.append(contentsOf: "\",".utf8)
    bytes.appendQuoted(reference)
    for operand in operands {
      bytes.appendComma()
      operand.append(.exact, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Appends `{"op":"set","object":"Account/1","keyPath":"balance","value":120}` for the feed.
  fileprivate func appendFeedText(to bytes: inout [UInt8]) {
    let (kind, operands) = form
    bytes.append(contentsOf: "{\"op\":\"".utf8)
    bytes.append(contentsOf: kind.name.utf8)
    bytes.append(contentsOf: "\",\"object\":".utf8)
    bytes.appendQuoted(reference)
    for (form, operand) in zip(kind.operands, operands) {
      if case .indexes(nil) = operand { continue }
      bytes.appendName(form.name)
      operand.append(.plain, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }
}

extension Operand {
  fileprivate func append(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    switch self {
    case .text(let text): bytes.appendJSONString(text)
    case .body(let body): body.appendStoredText(form, to: &bytes)
    case .value(let value): value.appendStoredText(form, to: &bytes)
    case .values(let values): bytes.appendList(values) { $0.appendStoredText(form, to: &$1) }
    case .members(let members): bytes.appendList(members) { $0.append(form, to: &$1) }
    case .indexes(let indexes?): bytes.appendList(indexes) { $1.appendDecimal($0) }
    case .indexes(nil): bytes.append(contentsOf: "null".utf8)
    case .mutation(let mutation): bytes.appendJSONString(mutation.rawValue)
    case .patch(let patch): bytes.appendList(patch.operations) { $0.append(form, to: &$1) }
    case .revision(let revision): bytes.appendDecimal(revision)
    case .lifetime(let lifetime): lifetime.append(form, to: &bytes)
    }
  }
}

extension NewMember {
  /// Appends the member. An object that is created in place is `{"@@made":["Account/2",{…}]}` in the journal; in the
  /// feed its name is in `@ref`, as a client may send it.
  fileprivate func append(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    switch (self, form) {
    case (.value(let value), _): value.appendStoredText(form, to: &bytes)
    case (.object(let reference, let body), .exact):
      bytes.append(contentsOf: StoredJSON.madeMember.description.utf8)
      bytes.appendQuoted(reference)
      bytes.appendComma()
      body.appendStoredText(form, to: &bytes)
      bytes.append(contentsOf: "]}".utf8)
    case (.object(let reference, let body), .plain):
      var named: JSONObject = ["@ref": .string(reference.text)]
      for (name, value) in body.members where name != "@ref" { named[name] = value }
      named.appendStoredText(form, to: &bytes)
    }
  }
}

extension JSONPatch.Operation {
  /// Appends `["move","/from","/path"]` for the journal, and the form of RFC 6902 §4 for the feed.
  fileprivate func append(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    let (kind, source, path, value) = self.form
    let isExact = form == .exact
    func name(_ name: String) { isExact ? bytes.appendComma() : bytes.appendName(name) }

    bytes.append(contentsOf: isExact ? "[".utf8 : "{\"op\":".utf8)
    bytes.appendJSONString(kind.rawValue)
    if let source {
      name("from")
      bytes.appendJSONString(source.text)
    }
    name("path")
    bytes.appendJSONString(path.text)
    if let value {
      name("value")
      value.appendStoredText(form, to: &bytes)
    }
    bytes.append(UInt8(ascii: isExact ? "]" : "}"))
  }
}

extension JSONParser where Dialect == StoredJSON {
  fileprivate mutating func parseTransaction() throws(JSONError) -> Transaction {
    try expect("[")
    let writer = try takesNull() ? nil : parseQuoted()
    try expect(",")
    let operations = try parseList { parser throws(JSONError) in try parser.parseOperation() }
    var transaction = Transaction(operations, writer: writer)
    if isNext(",") {
      try expect(",")
      transaction.author = try parseQuoted()
    }
    try expect("]")
    return transaction
  }

  private mutating func parseOperation() throws(JSONError) -> Operation {
    try expect("[")
    if takesWord("\"set\",") { return try parseSetting() }
    let kind: OperationKind = try parseWord { "unknown operation '\($0)'" }
    try expect(",")
    let object = try parseReference()
    var operands: [Operand] = []
    for form in kind.operands {
      try expect(",")
      operands.append(try parseOperand(form))
    }
    try expect("]")
    return Operation(kind, object, operands)
  }

  /// Parses the rest of an operation after `["set",`: the most frequent kind, which is read without a list of operands.
  private mutating func parseSetting() throws(JSONError) -> Operation {
    let object = try parseReference()
    try expect(",")
    let keyPath = try parseQuoted()
    try expect(",")
    let value = try parseValue()
    try expect("]")
    return .set(object, keyPath: keyPath, value)
  }

  private mutating func parseOperand(_ form: OperandForm) throws(JSONError) -> Operand {
    switch form {
    case .keyPath, .key: return .text(try parseQuoted())
    case .body: return .body(try parseBody())
    case .value: return .value(try parseValue())
    case .values: return .values(try parseList { parser throws(JSONError) in try parser.parseValue() })
    case .members: return .members(try parseList { parser throws(JSONError) in try parser.parseMember() })
    case .optionalIndexes: return .indexes(try takesNull() ? nil : parseIndexes())
    case .indexes: return .indexes(try parseIndexes())
    case .mutation: return .mutation(try parseWord { "unknown set operation '\($0)'" })
    case .patch:
      let operations = try parseList { parser throws(JSONError) in try parser.parsePatchOperation() }
      return .patch(JSONPatch(operations: operations))
    case .revision: return .revision(try parseUnsigned())
    case .lifetime: return .lifetime(try parseLifetime())
    }
  }

  private mutating func parseMember() throws(JSONError) -> NewMember {
    guard takesWord(StoredJSON.madeMember) else { return .value(try parseValue()) }
    let reference = try parseReference()
    try expect(",")
    let body = try parseBody()
    try expect("]")
    try expect("}")
    return .object(reference, body)
  }

  /// Parses an object with exact values, whatever the name of its first member is.
  private mutating func parseBody() throws(JSONError) -> JSONObject {
    guard isNext("{"), case .object(let object) = try parseObject(mayBeMarked: false) else {
      throw error("an object is missing")
    }
    return object
  }

  private mutating func parseIndexes() throws(JSONError) -> [Int] {
    try parseList { parser throws(JSONError) in
      guard case .integer(let number) = try parser.parseValue(), let index = Int(exactly: number) else {
        throw parser.error("an index must be a whole number")
      }
      return index
    }
  }

  private mutating func parsePatchOperation() throws(JSONError) -> JSONPatch.Operation {
    try expect("[")
    let kind: JSONPatch.Operation.Kind = try parseWord { "unknown patch operation '\($0)'" }
    let source = kind.hasSource ? try parsePointer() : nil
    let path = try parsePointer()
    if kind.hasValue { try expect(",") }
    let value = kind.hasValue ? try parseValue() : nil
    guard let operation = JSONPatch.Operation(kind, from: source, path, value) else {
      throw error("a value cannot be moved into itself")
    }
    try expect("]")
    return operation
  }

  private mutating func parsePointer() throws(JSONError) -> JSONPointer {
    try expect(",")
    let start = position
    let text = try parseQuoted()
    guard let pointer = JSONPointer(text) else {
      throw JSONError(reason: "'\(text)' is not a JSON pointer", offset: start)
    }
    return pointer
  }
}
