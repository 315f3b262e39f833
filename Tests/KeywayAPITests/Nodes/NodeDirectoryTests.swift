import Journal
import Testing

@testable import KeywayAPI

@Suite("The nodes that a node knows") struct NodeDirectoryTests {
  private final class World {
    let followers: Followers
    let directory: NodeDirectory

    init(_ url: String) {
      followers = Followers(limit: 2) { 1 << 40 }
      directory = NodeDirectory(url: url, followers: followers, journal: nil)
    }
  }

  private func address(_ directory: NodeDirectory, _ url: String) -> String? {
    directory.address(of: NodeMark(of: url))?.description
  }

  @Test("A node tells its followers of all others, and the node that it follows of those that follow it")
  func telling() throws {
    let (a, b, c, d) = ("http://a:1", "http://b:2", "http://c:3", "http://d:4")
    let (first, second) = (World(a), World(b))
    #expect(first.directory.isAlone && address(first.directory, b) == nil)
    #expect(second.followers.note(d, at: 0) == .new)
    #expect(first.followers.note(b, at: 0, below: second.directory.below) == .new)
    #expect(first.followers.note(b, at: 5, below: second.directory.below) == .known)
    #expect(first.followers.note(c, at: 0) == .new)
    #expect(first.followers.note("http://e:5", at: 0) == .refused)
    #expect(!first.directory.isAlone)
    #expect(first.directory.urls == [a, b, c, d])
    for url in [b, c, d] { #expect(address(first.directory, url) == url) }
    #expect(address(first.directory, "http://e:5") == nil)
    // What the one that is followed says of itself need not be where its follower reaches it.
    let given = try NodeAddress("http://localhost:1")
    #expect(!second.directory.isCurrent(first.directory.digest))
    second.directory.follow(given, first.directory.urls)
    #expect(second.directory.isCurrent(first.directory.digest))
    #expect(address(second.directory, a) == "http://localhost:1")
    for url in [c, d] { #expect(address(second.directory, url) == url) }
    #expect(second.directory.below == [d])
    #expect(first.followers.note(c, at: 0, below: ["http://f:6"]) == .new)
    #expect(!second.directory.isCurrent(first.directory.digest))
  }

  @Test("A mark is six letters and digits, the same at each start; too short a name has none")
  func marks() {
    let mark = NodeMark(of: "http://127.0.0.1:8080")
    #expect(mark.text.count == 6 && mark.text.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) })
    #expect(mark == NodeMark(of: "http://127.0.0.1:8080") && mark != NodeMark(of: "http://127.0.0.1:8081"))
    #expect(NodeMark(ofName: "\(mark.text)1-00") == mark)
    #expect(NodeMark(ofName: mark.text) == nil && NodeMark(ofName: "") == nil && NodeMark(ofName: "äöüäöüx") == nil)
  }
}
