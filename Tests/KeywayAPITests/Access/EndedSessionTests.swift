import HTTPServer
import ModelStore
import Seeding
import Testing

@testable import KeywayAPI

@Suite("Ended sessions as they are kept") struct EndedSessionTests {
  private static func session(_ name: String?, ended: Int64 = 1_000, expires: Int64 = 9_000) -> EndedSession {
    EndedSession(owner: IdentityMark(of: "alice"), name: name, ended: ended, expires: expires)
  }

  @Test("What is kept comes back, and nothing else is taken for it")
  func roundTrip() {
    var random = SplitMix64(seed: seed)
    for name in [nil, "a", "0k3f9ab"] {
      for time in [0, 1, Int64.max, 1_795_000_000_000] {
        let session = Self.session(name, ended: time, expires: time)
        #expect(EndedSession(session.bytes) == session)
        for count in 0..<33 { #expect(EndedSession(Array(session.bytes.prefix(count))) == nil) }
        for form in UInt8.min...UInt8.max where form != session.bytes[0] {
          #expect(EndedSession([form] + session.bytes.dropFirst()) == nil)
        }
        var changed = session.bytes
        changed[Int.random(in: 0..<changed.count, using: &random)] = .random(in: 0...255, using: &random)
        _ = EndedSession(changed)
      }
    }
  }

  @Test("Kept is what commits up to a revision say, until it expires; over the share of one owner, one stands for all")
  func kept() throws {
    let sessions = Sessions(limit: 2_000)
    try sessions.end(Self.session("a"))
    #expect(sessions.kept(upTo: .max).isEmpty)
    sessions.note(Self.session("a"), at: 5)
    sessions.note(Self.session("b"), at: 6)
    #expect(sessions.kept(upTo: 5).map(\.bytes) == [Self.session("a").bytes])
    #expect(Set(sessions.kept(upTo: 6).map(\.revision)) == [5, 6])
    sessions.note(Self.session("c", ended: 2_000, expires: 9_500), at: 7)
    let all = sessions.kept(upTo: 7)
    #expect(all.map { EndedSession($0.bytes) } == [Self.session(nil, ended: 2_000, expires: 9_500)])
    #expect(all.map(\.revision) == [5] && sessions.kept(upTo: 5) == all && sessions.kept(upTo: 4).isEmpty)
    let others = Sessions(limit: 2_000)
    others.restore(all, at: 9_499)
    #expect(others.kept(upTo: 7) == all)
    others.sweep(now: 9_500)
    #expect(others.kept(upTo: 7).isEmpty)
    others.restore(all, at: 9_500)
    #expect(others.kept(upTo: 7).isEmpty)
  }
}
