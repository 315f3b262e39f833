import TestKit
import Testing

@testable import HTTPServer

@Suite("The responses that are owed") struct DeferredResponsesTests {
  /// Makes a response of a connection that does not exist; it is never used, since none of these is answered.
  private static func response(_ all: DeferredResponses) throws -> DeferredResponse {
    DeferredResponse(
      connection: DaemonConnection(try #require(OpaquePointer(bitPattern: 16))), all: all, share: nil)
  }

  @Test("They leave in any order, and those that are left are owed", arguments: [1, 2, 300])
  func leaving(_ count: Int) throws {
    let all = DeferredResponses()
    var random = SplitMix64(seed: seed)
    var owed = try (0..<count).map { _ in try Self.response(all) }
    for response in owed {
      let isIn = all.insert(response)
      #expect(isIn)
    }
    while owed.count > count / 3 {
      all.remove(owed.remove(at: Int.random(in: owed.indices, using: &random)))
    }
    #expect(all.isEmpty == owed.isEmpty)
    #expect(Set(all.close().map(ObjectIdentifier.init)) == Set(owed.map(ObjectIdentifier.init)))
  }

  @Test("One that is not there, or has left, changes nothing, and none comes after the end")
  func strangers() throws {
    let all = DeferredResponses()
    let (first, second) = (try Self.response(all), try Self.response(all))
    #expect(all.insert(first))
    all.remove(second)
    #expect(!all.isEmpty)
    all.remove(first)
    all.remove(first)
    #expect(all.isEmpty && all.close().isEmpty)
    #expect(!all.insert(second))
  }
}
