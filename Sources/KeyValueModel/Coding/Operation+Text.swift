/// Writing operations: for the journal in the form `exact`, for the feed in the form `plain`.
extension Operation {
  /// Appends `["set","Account/1","balance",120]` for the journal.
  func appendJournalText(to bytes: inout [UInt8]) {
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
  func appendFeedText(to bytes: inout [UInt8]) {
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
  /// An object that is made in place is `{"@@made":["Account/2",{…}]}` in the journal; in the feed it has its name in
  /// `@ref`, as a client may send it.
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
  /// Appends `["move","/from","/path"]` for the journal, and for the feed what RFC 6902 §4 has.
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
