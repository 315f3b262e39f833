import Store
import Testing

@testable import Cluster
@testable import KeywayServer

@Suite("The nodes that a node knows") struct NodeDirectoryTests {
  private final class World {
    let followers: Followers
    let directory: NodeDirectory

    init(_ url: String, listed: [String]) throws {
      followers = Followers(limit: 2) { 1 << 40 }
      directory = NodeDirectory(url: url, followers: followers, listed: try NodeURLs(listed), journal: nil)
    }
  }

  private func address(_ directory: NodeDirectory, _ url: String) -> String? {
    directory.address(of: NodeMark(of: url))?.description
  }

  @Test("A node tells its followers of all others, and the node that it follows of those that follow it")
  func telling() throws {
    let (a, b, c, d) = ("http://a:1", "http://b:2", "http://c:3", "http://d:4")
    let listed = [a, b, c, d, "http://f:6"]
    let (first, second) = (try World(a, listed: listed), try World(b, listed: listed))
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
    // A leader's own address need not be the one at which its follower reaches it.
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

  @Test("A node that gives an address as its own that is not listed follows, and is no node that others hear of")
  func unlisted() throws {
    let (a, b, c, d) = ("http://a:1", "http://b:2", "http://c:3", "http://d:4")
    let world = try World(a, listed: [c])
    #expect(world.followers.note(b, at: 0, below: [c, d]) == .new)
    #expect(world.followers.present.map(\.name) == [b])
    #expect(world.directory.urls == [a, c] && world.directory.below == [c])
    #expect(address(world.directory, b) == nil && address(world.directory, d) == nil)
    #expect(address(world.directory, c) == c)
    // Nor does the followed node introduce one.
    let follower = try World(b, listed: [c])
    follower.directory.follow(try NodeAddress(a), [a, b, c, d])
    #expect(address(follower.directory, a) == a && address(follower.directory, c) == c)
    #expect(address(follower.directory, d) == nil)
  }

  @Test("Addresses are compared as they are normalized, and what is not an address is refused with its setting")
  func addresses() throws {
    let listed = try NodeURLs(["HTTP://Example.org/", "http://[::1]:81", "unix:/run/Keyway", "http://b:8080"])
    for url in [
      "http://example.org", "http://EXAMPLE.org:80/", "http://[::1]:81/", "unix:/run/Keyway", "http://b:8080",
    ] {
      #expect(listed.contains(url), "\(url)")
    }
    for url in [
      "http://example.org:81", "http://[::1]", "unix:/run/keyway", "http://b", "http://b:8080/x", "http://b:8080@c", "",
      "http://c@b:8080", "https://b:8080",
    ] {
      #expect(!listed.contains(url), "\(url)")
    }
    #expect(try !NodeURLs().contains("http://b:8080"))
    let fault = #expect(throws: NodeFault.self) { try NodeURLs(["http://b", "b:8080"]) }
    #expect(fault?.reason.hasPrefix("nodes.urls: 'b:8080' ") == true)
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
