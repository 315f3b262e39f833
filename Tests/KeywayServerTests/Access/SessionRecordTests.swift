import HTTPServer
import KeyValueModel
import Store
import TestKit
import Testing

@testable import KeywayServer

@Suite("Sessions as the store keeps them") struct SessionRecordTests {
  private static func record(
    _ subject: String = "alice", expires: Double = 9, _ secret: SessionSecret = SessionSecret()
  ) -> SessionRecord {
    let claims: JSONObject = ["sub": .string(subject), "exp": .number(expires), "roles": .array([.string("a\n😀")])]
    let identity = Identity(
      claims: claims, subject: subject, expires: expires, issued: nil,
      key: KeyMark(digest: Array(repeating: 7, count: KeyMark.byteCount)))
    return SessionRecord(secret.digest, of: identity)
  }

  private static func sessions(_ configure: (inout Sessions.Limits) -> Void = { _ in }) -> Sessions {
    var limits = Sessions.Limits()
    configure(&limits)
    return Sessions(limits, leeway: 1)
  }

  /// Commits the beginning or the end of a session.
  private static func commit(_ write: Sessions.Write, to sessions: Sessions, at revision: Revision) -> StoredAttachment
  {
    let bytes = sessions.prepare(write, at: revision).bytes
    sessions.conclude(write, isDone: true)
    return StoredAttachment(revision: revision, milliseconds: 0, bytes: bytes)
  }

  @Test("A secret comes back from its text, and no other text stands for it")
  func secrets() throws {
    let secret = SessionSecret()
    #expect(secret.text.utf8.count == 43 && SessionSecret(text: secret.text)?.digest == secret.digest)
    #expect(SessionSecret().text != secret.text)
    #expect(SessionDigest(bytes: secret.digest.bytes[...]) == secret.digest)
    let last = try #require(secret.text.last)
    let others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".filter { $0 != last }
    #expect(others.allSatisfy { SessionSecret(text: secret.text.dropLast() + String($0))?.digest != secret.digest })
    let (short, plus) = (String(secret.text.dropLast()), "+\(secret.text.dropFirst())")
    for text in ["", "\(secret.text)=", "\(secret.text)A", short, plus] {
      #expect(SessionSecret(text: text) == nil, "\(text)")
    }
  }

  @Test("A change comes back from its bytes, and nothing that is cut off or changed is fatal")
  func roundTrip() {
    var random = SplitMix64(seed: seed)
    let some = (0..<3).map { _ in SessionSecret().digest }
    for change in [
      SessionChange(begun: Self.record()), SessionChange(ended: some), SessionChange(begun: Self.record(), ended: some),
      SessionChange(),
    ] {
      #expect(SessionChange(change.bytes) == change)
      for count in 0..<change.bytes.count where change.begun == nil {
        #expect(SessionChange(Array(change.bytes.prefix(count))) == nil)
      }
      for form in UInt8.min...UInt8.max where form != change.bytes[0] {
        #expect(SessionChange([form] + change.bytes.dropFirst()) == nil)
      }
      for _ in 0..<200 {
        var changed = change.bytes
        changed[Int.random(in: 0..<changed.count, using: &random)] = .random(in: 0...255, using: &random)
        _ = SessionChange(Array(changed.prefix(.random(in: 0...changed.count, using: &random))))
      }
      #expect(StoredResponse(change.bytes) == nil && !PassedAttachment.mayHaveKey(change.bytes))
    }
  }

  @Test("Kept is what commits up to a revision have begun and not ended, while they are under way too")
  func kept() {
    let sessions = Self.sessions()
    let (one, two) = (Self.record(), Self.record())
    _ = sessions.prepare(.begin(one), at: 5)
    #expect(sessions.session(of: one.digest) == nil)
    #expect(sessions.kept(upTo: 4).isEmpty && sessions.kept(upTo: 5).map(\.revision) == [5])
    sessions.conclude(.begin(one), isDone: true)
    _ = sessions.prepare(.begin(two), at: 6)
    sessions.conclude(.begin(two), isDone: false)
    #expect(sessions.session(of: one.digest) == one && sessions.session(of: two.digest) == nil)
    // Before the commit the session has ended only on this node.
    #expect(sessions.end(one.digest) && sessions.session(of: one.digest) == nil && !sessions.end(two.digest))
    #expect(sessions.kept(upTo: 9).count == 1)
    _ = sessions.prepare(.end(one.digest), at: 7)
    #expect(sessions.kept(upTo: 6).count == 1 && sessions.kept(upTo: 7).isEmpty)
    sessions.conclude(.end(one.digest), isDone: true)
    #expect(sessions.count == 0 && sessions.kept(upTo: 9).isEmpty)
  }

  @Test("One more than the share of an identity ends its oldest, by the same commit on every node")
  func share() {
    let (sessions, other) = (Self.sessions { $0.perIdentity = 2 }, Self.sessions())
    let mine = (0..<4).map { _ in Self.record() }
    let hers = Self.record("eve")
    var attachments = [Self.commit(.begin(hers), to: sessions, at: 1)]
    for (place, record) in mine.enumerated() {
      attachments.append(Self.commit(.begin(record), to: sessions, at: Revision(2 + place)))
    }
    other.restore(attachments, at: 0)
    for node in [sessions, other] {
      #expect(mine.map { node.session(of: $0.digest) != nil } == [false, false, true, true])
      #expect(node.session(of: hers.digest) == hers)
    }
    #expect(sessions.kept(upTo: 9) == other.kept(upTo: 9))
  }

  @Test("A session over all bytes is refused, unless it takes the place of an older one of its identity")
  func room() {
    let sessions = Self.sessions { ($0.bytes, $0.perIdentity) = (1_200, 1) }
    func hasRoom(_ record: SessionRecord) -> Bool { (try? sessions.checkRoom(for: record)) != nil }
    for (place, subject) in ["a", "b"].enumerated() {
      let record = Self.record(subject)
      #expect(hasRoom(record))
      _ = Self.commit(.begin(record), to: sessions, at: Revision(1 + place))
    }
    #expect(!hasRoom(Self.record("c")) && hasRoom(Self.record("b")))
  }

  @Test("An expired session is forgotten, and does not come back from a journal")
  func expiry() {
    let sessions = Self.sessions()
    let record = Self.record()
    let attachment = Self.commit(.begin(record), to: sessions, at: 1)
    sessions.sweep(now: 9_999)
    #expect(sessions.count == 1)
    sessions.sweep(now: 9_999 + 60_000)
    #expect(sessions.count == 0)
    sessions.restore([attachment], at: 10_000)
    #expect(sessions.count == 0)
    sessions.restore([attachment], at: 9_999)
    #expect(sessions.count == 1)
  }
}
