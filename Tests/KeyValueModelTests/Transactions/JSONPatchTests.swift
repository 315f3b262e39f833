import KeyValueModel
import Testing

/// A patch, a document, and the expected result: a document or a failure.
struct PatchCase: Sendable, CustomTestStringConvertible {
  var name: String
  var document: String
  var patch: String
  var result: String?
  var failure: JSONPatchError.Kind?
  var index: Int?

  init(_ name: String, _ document: String, _ patch: String, gives result: String) {
    (self.name, self.document, self.patch, self.result) = (name, document, patch, result)
  }

  init(_ name: String, _ document: String, _ patch: String, fails failure: JSONPatchError.Kind, at index: Int? = 0) {
    (self.name, self.document, self.patch, self.failure, self.index) = (name, document, patch, failure, index)
  }

  var testDescription: String { name }

  func check() throws {
    let document = try Value(json: document)
    let value = try Value(json: patch)
    let outcome = Result { () throws(JSONPatchError) in try JSONPatch(value).applied(to: document) }
    switch outcome {
    case .success(let changed):
      #expect(changed.json == result, "\(name)")
      #expect(failure == nil, "\(name)")
    case .failure(let error):
      #expect(error.kind == failure, "\(name): \(error)")
      #expect(error.operationIndex == index, "\(name): \(error)")
      #expect(!error.message.isEmpty)
    }
  }
}

@Suite struct JSONPatchTests {
  @Test(
    "the examples of RFC 6902, appendix A",
    arguments: [
      PatchCase(
        "A.1", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz","value":"qux"}]"#, gives: #"{"foo":"bar","baz":"qux"}"#),
      PatchCase(
        "A.2", #"{"foo":["bar","baz"]}"#, #"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
        gives: #"{"foo":["bar","qux","baz"]}"#),
      PatchCase("A.3", #"{"baz":"qux","foo":"bar"}"#, #"[{"op":"remove","path":"/baz"}]"#, gives: #"{"foo":"bar"}"#),
      PatchCase(
        "A.4", #"{"foo":["bar","qux","baz"]}"#, #"[{"op":"remove","path":"/foo/1"}]"#,
        gives: #"{"foo":["bar","baz"]}"#),
      PatchCase(
        "A.5", #"{"baz":"qux","foo":"bar"}"#, #"[{"op":"replace","path":"/baz","value":"boo"}]"#,
        gives: #"{"baz":"boo","foo":"bar"}"#),
      PatchCase(
        "A.6", #"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
        #"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#,
        gives: #"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#),
      PatchCase(
        "A.7", #"{"foo":["all","grass","cows","eat"]}"#, #"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
        gives: #"{"foo":["all","cows","eat","grass"]}"#),
      PatchCase(
        "A.8", #"{"baz":"qux","foo":["a",2,"c"]}"#,
        #"[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]"#,
        gives: #"{"baz":"qux","foo":["a",2,"c"]}"#),
      PatchCase("A.9", #"{"baz":"qux"}"#, #"[{"op":"test","path":"/baz","value":"bar"}]"#, fails: .testFailed),
      PatchCase(
        "A.10", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/child","value":{"grandchild":{}}}]"#,
        gives: #"{"foo":"bar","child":{"grandchild":{}}}"#),
      PatchCase(
        "A.11", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz","value":"qux","xyz":123}]"#,
        gives: #"{"foo":"bar","baz":"qux"}"#),
      PatchCase(
        "A.12", #"{"foo":"bar"}"#, #"[{"op":"add","path":"/baz/bat","value":"qux"}]"#, fails: .missingLocation),
      PatchCase(
        "A.14", #"{"/":9,"~1":10}"#, #"[{"op":"test","path":"/~01","value":10}]"#, gives: #"{"/":9,"~1":10}"#),
      PatchCase(
        "A.15", #"{"/":9,"~1":10}"#, #"[{"op":"test","path":"/~01","value":"10"}]"#, fails: .testFailed),
      PatchCase(
        "A.16", #"{"foo":["bar"]}"#, #"[{"op":"add","path":"/foo/-","value":["abc","def"]}]"#,
        gives: #"{"foo":["bar",["abc","def"]]}"#),
    ])
  func appendix(_ example: PatchCase) throws { try example.check() }

  @Test("RFC 6902, A.13: an operation that names a member twice is refused as JSON already")
  func duplicateMember() {
    #expect(throws: JSONError.self) {
      try Value(json: #"[{"op":"add","path":"/baz","value":"qux","op":"remove"}]"#)
    }
  }

  @Test(
    "locations",
    arguments: [
      PatchCase("empty patch", #"{"a":1}"#, "[]", gives: #"{"a":1}"#),
      PatchCase(
        "add replaces a member in its place", #"{"a":1,"b":2}"#, #"[{"op":"add","path":"/a","value":null}]"#,
        gives: #"{"a":null,"b":2}"#),
      PatchCase("add replaces the document", #"{"a":1}"#, #"[{"op":"add","path":"","value":[1]}]"#, gives: "[1]"),
      PatchCase("replace replaces the document", "1", #"[{"op":"replace","path":"","value":2}]"#, gives: "2"),
      PatchCase("remove leaves null of the document", "1", #"[{"op":"remove","path":""}]"#, gives: "null"),
      PatchCase(
        "the empty name is a name", #"{"":{"":1}}"#, #"[{"op":"replace","path":"//","value":2}]"#,
        gives: #"{"":{"":2}}"#),
      PatchCase(
        "a tilde and a slash in a name", #"{"a/b":1,"m~n":2}"#,
        #"[{"op":"remove","path":"/a~1b"},{"op":"replace","path":"/m~0n","value":3}]"#, gives: #"{"m~n":3}"#),
      PatchCase(
        "digits name members of objects", #"{"01":1}"#, #"[{"op":"replace","path":"/01","value":2}]"#,
        gives: #"{"01":2}"#),
      PatchCase("- names a member of an object", "{}", #"[{"op":"add","path":"/-","value":2}]"#, gives: #"{"-":2}"#),
      PatchCase("add at the end by number", "[1]", #"[{"op":"add","path":"/1","value":2}]"#, gives: "[1,2]"),
      PatchCase("add beyond the end", "[1]", #"[{"op":"add","path":"/2","value":2}]"#, fails: .missingLocation),
      PatchCase("a leading zero", "[1,2]", #"[{"op":"replace","path":"/01","value":2}]"#, fails: .invalidIndex),
      PatchCase("a sign", "[1,2]", #"[{"op":"replace","path":"/+1","value":2}]"#, fails: .invalidIndex),
      PatchCase("a negative index", "[1,2]", #"[{"op":"remove","path":"/-1"}]"#, fails: .invalidIndex),
      PatchCase("a name in an array", "[1,2]", #"[{"op":"add","path":"/a","value":2}]"#, fails: .invalidIndex),
      PatchCase("an empty index", "[1,2]", #"[{"op":"add","path":"/","value":2}]"#, fails: .invalidIndex),
      PatchCase("digits of another script", "[1,2]", #"[{"op":"remove","path":"/١"}]"#, fails: .invalidIndex),
      PatchCase(
        "an index of many digits", "[1]", #"[{"op":"remove","path":"/99999999999999999999"}]"#,
        fails: .missingLocation),
      PatchCase("remove at -", "[1]", #"[{"op":"remove","path":"/-"}]"#, fails: .missingLocation),
      PatchCase("test at -", "[1]", #"[{"op":"test","path":"/-","value":1}]"#, fails: .missingLocation),
      PatchCase(
        "replace what is not there", "{}", #"[{"op":"replace","path":"/a","value":1}]"#,
        fails: .missingLocation),
      PatchCase("remove what is not there", "{}", #"[{"op":"remove","path":"/a"}]"#, fails: .missingLocation),
      PatchCase("into a number", #"{"a":1}"#, #"[{"op":"add","path":"/a/b","value":1}]"#, fails: .missingLocation),
      PatchCase("into null", #"{"a":null}"#, #"[{"op":"add","path":"/a/b","value":1}]"#, fails: .missingLocation),
      PatchCase(
        "test of null that is missing", "{}", #"[{"op":"test","path":"/a","value":null}]"#,
        fails: .missingLocation),
      PatchCase(
        "the second of two fails", "{}",
        #"[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/b"}]"#, fails: .missingLocation, at: 1),
    ])
  func locations(_ example: PatchCase) throws { try example.check() }

  @Test(
    "moving, copying and testing",
    arguments: [
      PatchCase("move onto itself", #"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/a"}]"#, gives: #"{"a":1}"#),
      PatchCase(
        "move of nothing onto itself", "{}", #"[{"op":"move","from":"/a","path":"/a"}]"#,
        fails: .missingLocation),
      PatchCase(
        "move outward", #"{"a":{"b":{"c":1}}}"#, #"[{"op":"move","from":"/a/b","path":"/a"}]"#,
        gives: #"{"a":{"c":1}}"#),
      PatchCase(
        "move to the whole document", #"{"a":{"b":1}}"#, #"[{"op":"move","from":"/a","path":""}]"#,
        gives: #"{"b":1}"#),
      PatchCase(
        "move to a name that only begins alike", #"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/ab"}]"#,
        gives: #"{"ab":1}"#),
      PatchCase(
        "move to the place behind the last, counted after the removal", "[1,2,3]",
        #"[{"op":"move","from":"/0","path":"/-"}]"#, gives: "[2,3,1]"),
      PatchCase(
        "move to a place that the removal takes away", "[1,2]", #"[{"op":"move","from":"/0","path":"/2"}]"#,
        fails: .missingLocation),
      PatchCase(
        "copy into itself", #"{"a":{"b":1}}"#, #"[{"op":"copy","from":"/a","path":"/a/c"}]"#,
        gives: #"{"a":{"b":1,"c":{"b":1}}}"#),
      PatchCase(
        "copy into an array", #"[1,{"a":2}]"#, #"[{"op":"copy","from":"/1/a","path":"/0"}]"#,
        gives: #"[2,1,{"a":2}]"#),
      PatchCase(
        "copy of what is not there", "{}", #"[{"op":"copy","from":"/a","path":"/b"}]"#,
        fails: .missingLocation),
      PatchCase(
        "test of numbers by worth", #"{"a":1.0,"b":[100]}"#,
        #"[{"op":"test","path":"/a","value":1},{"op":"test","path":"","value":{"b":[1e2],"a":1}}]"#,
        gives: #"{"a":1,"b":[100]}"#),
      PatchCase(
        "test of numbers that a double cannot tell", #"{"a":9007199254740993}"#,
        #"[{"op":"test","path":"/a","value":9007199254740992.0}]"#, fails: .testFailed),
      PatchCase(
        "test of strings by bytes", "[\"e\u{301}\"]", "[{\"op\":\"test\",\"path\":\"/0\",\"value\":\"\u{e9}\"}]",
        fails: .testFailed),
      PatchCase(
        "test of an array of another length", "[1]", #"[{"op":"test","path":"","value":[1,2]}]"#,
        fails: .testFailed),
      PatchCase(
        "test of an object with another member", #"{"a":1}"#, #"[{"op":"test","path":"","value":{"b":1}}]"#,
        fails: .testFailed),
      PatchCase("test of true against 1", "[true]", #"[{"op":"test","path":"/0","value":1}]"#, fails: .testFailed),
    ])
  func movesAndTests(_ example: PatchCase) throws { try example.check() }

  @Test(
    "what is no patch is refused as a whole, even where an earlier operation would fail",
    arguments: [
      PatchCase("an object", "{}", #"{"op":"remove","path":"/a"}"#, fails: .malformed, at: nil),
      PatchCase("an operation that is no object", "{}", #"[{"op":"remove","path":"/a"},7]"#, fails: .malformed, at: 1),
      PatchCase("no op", "{}", #"[{"path":"/a"}]"#, fails: .malformed),
      PatchCase("an op that is no string", "{}", #"[{"op":1,"path":"/a"}]"#, fails: .malformed),
      PatchCase("an unknown op", "{}", #"[{"op":"Add","path":"/a","value":1}]"#, fails: .malformed),
      PatchCase("no path", "{}", #"[{"op":"remove"}]"#, fails: .malformed),
      PatchCase("a path that is no string", "{}", #"[{"op":"remove","path":null}]"#, fails: .malformed),
      PatchCase("a path without a slash", "{}", #"[{"op":"remove","path":"a"}]"#, fails: .malformed),
      PatchCase("a tilde at the end", "{}", #"[{"op":"remove","path":"/a~"}]"#, fails: .malformed),
      PatchCase("a tilde before a 2", "{}", #"[{"op":"remove","path":"/~2"}]"#, fails: .malformed),
      PatchCase("no value", "{}", #"[{"op":"add","path":"/a"}]"#, fails: .malformed),
      PatchCase("no value to test", "{}", #"[{"op":"test","path":"/a"}]"#, fails: .malformed),
      PatchCase("no from", "{}", #"[{"op":"move","path":"/a"}]"#, fails: .malformed),
      PatchCase("a bad from", "{}", #"[{"op":"copy","from":"b","path":"/a"}]"#, fails: .malformed),
      PatchCase("a move into itself", #"{"a":{}}"#, #"[{"op":"move","from":"/a","path":"/a/b"}]"#, fails: .malformed),
      PatchCase("a move of everything", "{}", #"[{"op":"move","from":"","path":"/a"}]"#, fails: .malformed),
    ])
  func malformed(_ example: PatchCase) throws { try example.check() }

  @Test("the members of a to-many are patched as an array, and references are tested as strings")
  func members() throws {
    let reference = try #require(Reference("A/1"))
    let list = MemberList([.reference(reference), .string("b")], isOrdered: true)
    let patch = try Value(
      json: #"[{"op":"test","path":"/list/0","value":"A/1"},{"op":"add","path":"/list/1","value":"new"}]"#)
    let changed = try JSONPatch(patch).applied(to: .object(["list": .members(list)]))
    #expect(changed.json == #"{"list":["A/1","new","b"]}"#)
    #expect(list.count == 2)
  }

  @Test("touched members are those written to, in the order of the first touch")
  func touchedMembers() throws {
    let patch = try Value(
      json: """
        [{"op":"test","path":"/tested","value":1},{"op":"replace","path":"/b/0","value":1},
        {"op":"copy","from":"/read","path":"/c"},{"op":"move","from":"/d/x","path":"/a~1"},
        {"op":"remove","path":"/b"},{"op":"add","path":"/e/-","value":1}]
        """)
    #expect(try JSONPatch(patch).touchedMembers == ["b", "c", "d", "a/", "e"])
    #expect(try !JSONPatch(patch).touchesDocument)
    let whole = try JSONPatch(Value(json: #"[{"op":"move","from":"/a","path":""}]"#))
    #expect(whole.touchedMembers == ["a"])
    #expect(whole.touchesDocument)
  }

  @Test("more operations than allowed are refused")
  func operationLimit() throws {
    let operation = try Value(json: #"{"op":"test","path":"","value":1}"#)
    #expect(try JSONPatch(.array([operation, operation]), operationLimit: 2).applied(to: .integer(1)) == .integer(1))
    let error = #expect(throws: JSONPatchError.self) {
      try JSONPatch(.array([operation, operation, operation]), operationLimit: 2)
    }
    #expect(error?.kind == .tooManyOperations)
  }

  @Test("copies that double the document fail at the limit, and so does what nests too deep")
  func limits() throws {
    let double = try Value(json: #"{"op":"copy","from":"/a","path":"/a/-"}"#)
    let bomb = try JSONPatch(.array(Array(repeating: double, count: 40)))
    let wide = #expect(throws: JSONPatchError.self) {
      try bomb.applied(to: Value(json: #"{"a":[1]}"#), nodeLimit: 10_000, depthLimit: 1000)
    }
    #expect(wide?.kind == .tooLarge)
    #expect(wide?.operationIndex == 12)
    let deep = #expect(throws: JSONPatchError.self) { try bomb.applied(to: Value(json: #"{"a":[1]}"#), depthLimit: 6) }
    #expect(deep?.kind == .tooLarge)
    #expect(deep?.operationIndex == 4)
    let move = try JSONPatch(Value(json: #"[{"op":"move","from":"/a","path":"/b/c/d"}]"#))
    let document = try Value(json: #"{"a":[[1]],"b":{"c":{}}}"#)
    #expect(try move.applied(to: document, depthLimit: 5).json == #"{"b":{"c":{"d":[[1]]}}}"#)
    #expect(throws: JSONPatchError.self) { try move.applied(to: document, depthLimit: 4) }
  }

  @Test("the document that is patched stays what it was")
  func persistence() throws {
    let document = try Value(json: #"{"a":[1,{"b":2}]}"#)
    let patch = try JSONPatch(Value(json: #"[{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/0/c","value":3}]"#))
    #expect(try patch.applied(to: document).json == #"{"a":[{"b":2,"c":3}]}"#)
    #expect(document.json == #"{"a":[1,{"b":2}]}"#)
  }
}
