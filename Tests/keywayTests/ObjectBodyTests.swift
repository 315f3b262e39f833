import KeyValueModel
import Testing

@testable import keyway

@Suite("What create and patch take as keys") struct ObjectBodyTests {
  @Test(
    "JSON is taken as it is, and key=value is a key each",
    arguments: [
      ([], "{}"), ([#"{"a":1}"#], #"{"a":1}"#), (["[1]"], "[1]"), (["a=1", "b=x y"], #"{"a":1,"b":"x y"}"#),
      (["a=", "b=null", #"c="3""#], #"{"a":"","b":null,"c":"3"}"#), (["a=b=c"], #"{"a":"b=c"}"#),
      (["a=-5", "b=Person/7"], #"{"a":-5,"b":"Person/7"}"#), (["-"], #"{"from":"input"}"#),
    ])
  func body(_ words: [String], _ expected: String) throws {
    #expect(try ObjectBody.json(words) { Array(#"{"from":"input"}"#.utf8) }.json == expected)
  }

  @Test(
    "anything else is a mistake", arguments: [["{"], ["a"], ["=1"], ["a=1", "a=2"], ["{}", "b=1"], ["a=1", "-"]])
  func mistake(_ words: [String]) {
    #expect(throws: CommandFailure.self) { try ObjectBody.json(words) { [] } }
  }
}
