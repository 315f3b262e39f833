import KeyValueModel
import Testing

@testable import KeywayServer

@Suite("The text of a cursor") struct CursorTests {
  @Test(
    "It is the epoch and the revision, in quotation marks where it is an entity tag",
    arguments: [
      ("k3f9ab", 0, "k3f9ab-0"), ("k3f9ab", 12_345_678, "k3f9ab-12345678"), ("e", .max, "e-18446744073709551615"),
      ("an-epoch-longer-than-most", 7, "an-epoch-longer-than-most-7"), ("", 1, "-1"), ("é", 1, "é-1"),
    ] as [(String, Revision, String)])
  func text(_ epoch: String, _ revision: Revision, _ text: String) {
    let cursor = Cursor(epoch: epoch, revision: revision)
    #expect(cursor.description == text)
    #expect(cursor.entityTag == "\"" + text + "\"")
  }

  @Test("It is read back", arguments: [0, 1, 9, 10, 1_000_000, .max] as [Revision])
  func readBack(_ revision: Revision) {
    let cursor = Cursor(epoch: "k3-9", revision: revision)
    #expect(Cursor(cursor.description) == cursor)
  }
}
