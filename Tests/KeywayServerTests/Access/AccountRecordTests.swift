import Crypto
import HTTPServer
import KeyValueModel
import Store
import TestKit
import Testing

@testable import KeywayServer

@Suite("Accounts as the store keeps them") struct AccountRecordTests {
  private static let cheap = PasswordHash.Cost(logarithm: 4, blockSize: 8, parallelism: 1)

  private static func account(
    _ name: String, _ password: String = "correct horse", _ claims: JSONObject = [:]
  ) throws -> Account {
    Account(try #require(AccountName(name)), password: try PasswordHash(of: password, cost: cheap), claims: claims)
  }

  @Test("A hash is of its password alone, has a salt of its own, and comes back from its bytes")
  func hashes() throws {
    let hash = try PasswordHash(of: "correct horse", cost: Self.cheap)
    #expect(try hash.isHash(of: "correct horse"))
    for other in ["correct horsf", "correct horse ", "", "Correct horse"] { #expect(try !hash.isHash(of: other)) }
    #expect(try PasswordHash(of: "correct horse", cost: Self.cheap) != hash)
    let again = try #require(PasswordHash(bytes: hash.bytes[...]))
    #expect(try again == hash && again.isHash(of: "correct horse"))
    #expect(PasswordHash(bytes: hash.bytes.dropLast()) == nil)
    for parameters in [[0, 8, 1], [21, 8, 1], [15, 0, 1], [20, 32, 1], [15, 8, 0], [15, 8, 17]] as [[UInt8]] {
      #expect(PasswordHash(bytes: (parameters + hash.bytes.dropFirst(3))[...]) == nil, "\(parameters)")
    }
    // The same characters, composed and decomposed.
    #expect(try PasswordHash(of: "caf\u{E9}-latte", cost: Self.cheap).isHash(of: "cafe\u{301}-latte"))
  }

  @Test("The standard cost is the one of RFC 7914's parameters N=2^15, r=8, p=3")
  func standardCost() throws {
    #expect(PasswordHash.Cost.standard == PasswordHash.Cost(checking: 15, 8, 3))
    // The vector of RFC 7914 §12 for "password", "NaCl", N=1024, r=8, p=16 has 64 bytes, of which these are the first.
    let salt = Array("NaCl".utf8)
    let vector: [UInt8] = [
      0xFD, 0xBA, 0xBE, 0x1C, 0x9D, 0x34, 0x72, 0x00, 0x78, 0x56, 0xE7, 0x19, 0x0D, 0x01, 0xE9, 0xFE,
    ]
    let cost = PasswordHash.Cost(logarithm: 10, blockSize: 8, parallelism: 16)
    #expect(try PasswordHash.derive("password", salt, cost).withUnsafeBytes { $0.prefix(16).elementsEqual(vector) })
  }

  @Test("A password has at least 8 characters, whatever they are")
  func lengths() {
    for text in ["", "1234567", "ééééééé", "cafe\u{301}12"] { #expect(!PasswordHash.isLongEnough(text), "\(text)") }
    for text in ["12345678", "        ", "éééééééé", "密码密码密码密码"] {
      #expect(PasswordHash.isLongEnough(text), "\(text)")
    }
  }

  @Test("A name is 1 to 128 letters, digits and some signs, compared without case")
  func names() throws {
    for text in ["a", "Ann.Lee_1~-+@example", String(repeating: "x", count: 128)] {
      #expect(AccountName(text)?.text == text)
    }
    for text in ["", "a b", "a/b", "é", "a\n", "a,b", String(repeating: "x", count: 129)] {
      #expect(AccountName(text) == nil, "\(text)")
    }
    #expect(AccountName("Ann") == AccountName("aNN") && AccountName("ann") != AccountName("anna"))
  }

  @Test("A change comes back from its bytes, and nothing that is cut off or changed is fatal")
  func roundTrip() throws {
    var random = SplitMix64(seed: seed)
    let account = try Self.account("Ann", "correct horse", ["roles": .array([.string("a\n😀")])])
    let name = try #require(AccountName("Bob"))
    for change in [AccountChange.set(account), .remove(name)] {
      #expect(AccountChange(change.bytes) == change)
      for form in UInt8.min...UInt8.max where form != change.bytes[0] {
        #expect(AccountChange([form] + change.bytes.dropFirst()) == nil)
      }
      for _ in 0..<200 {
        var changed = change.bytes
        changed[Int.random(in: 0..<changed.count, using: &random)] = .random(in: 0...255, using: &random)
        _ = AccountChange(Array(changed.prefix(.random(in: 0...changed.count, using: &random))))
      }
      #expect(SessionChange(change.bytes) == nil && StoredResponse(change.bytes) == nil)
      #expect(!PassedAttachment.mayHaveKey(change.bytes))
    }
  }

  @Test("Kept is what commits up to a revision have left, while they are under way too")
  func kept() throws {
    let accounts = Accounts(limit: 1 << 20)
    func names(upTo revision: Revision) -> [AccountChange?] {
      accounts.kept(upTo: revision, milliseconds: 0).map { AccountChange($0.bytes) }
    }
    let (first, second) = (try Self.account("ann"), try Self.account("ann", "battery staple"))
    let one = accounts.write(.set(password: first.password, claims: nil), of: first.name)
    _ = accounts.prepare(one, at: 5)
    #expect(accounts.account(named: first.name) == nil && names(upTo: 4).isEmpty)
    #expect(names(upTo: 5) == [.set(first)])
    accounts.conclude(one, isDone: true)
    #expect(accounts.account(named: second.name) == first && accounts.has(first.mark))
    // Two changes on their way: each is what the state of its revision has.
    let two = accounts.write(.set(password: second.password, claims: nil), of: first.name)
    let three = accounts.write(.remove, of: first.name)
    _ = accounts.prepare(two, at: 6)
    _ = accounts.prepare(three, at: 7)
    #expect(names(upTo: 5) == [.set(first)] && names(upTo: 6) == [.set(second)] && names(upTo: 7).isEmpty)
    accounts.conclude(two, isDone: true)
    #expect(accounts.has(second.mark) && !accounts.has(first.mark))
    accounts.conclude(three, isDone: false)
    #expect(names(upTo: 9) == [.set(second)] && accounts.count == 1)
    let other = Accounts(limit: 1 << 20)
    other.restore(accounts.kept(upTo: 9, milliseconds: 0))
    #expect(other.all() == [second] && other.has(second.mark))
  }

  @Test("Changes on their way at the same time each keep what the other changes; a removal leaves nothing to change")
  func merging() throws {
    let accounts = Accounts(limit: 1 << 20)
    let (old, new) = (try Self.account("Ann", "correct horse", ["a": .integer(1)]), try Self.account("ann", "battery"))
    func write(_ change: Accounts.Write.Change) -> Accounts.Write { accounts.write(change, of: new.name) }
    let making = write(.set(password: old.password, claims: old.claims))
    _ = accounts.prepare(making, at: 1)
    accounts.conclude(making, isDone: true)
    let password = write(.set(password: new.password, claims: nil))
    let claims = write(.set(password: nil, claims: ["b": .integer(2)]))
    for (revision, write) in [(2, password), (3, claims)] { _ = accounts.prepare(write, at: Revision(revision)) }
    // Prepared again, as behind another node's commit.
    for (revision, write) in [(3, password), (4, claims)] { _ = accounts.prepare(write, at: Revision(revision)) }
    accounts.conclude(password, isDone: true)
    let both = accounts.conclude(claims, isDone: true).present
    #expect(both?.password == new.password && both?.claims == ["b": .integer(2)])
    let (removal, late) = (write(.remove), write(.set(password: nil, claims: [:])))
    for (revision, write) in [(5, removal), (6, late)] { _ = accounts.prepare(write, at: Revision(revision)) }
    accounts.conclude(removal, isDone: true)
    #expect(accounts.conclude(late, isDone: true) == (nil, nil) && accounts.count == 0)
  }

  @Test("Accounts over all bytes are refused, unless they are a change that takes no more")
  func room() throws {
    let accounts = Accounts(limit: 1_000)
    func hasRoom(_ account: Account, _ claims: JSONObject? = nil) -> Bool {
      (try? accounts.checkRoom(for: account.name, claims: claims)) != nil
    }
    for (place, name) in ["a", "b"].enumerated() {
      let account = try Self.account(name)
      #expect(hasRoom(account))
      let write = accounts.write(.set(password: account.password, claims: nil), of: account.name)
      _ = accounts.prepare(write, at: Revision(1 + place))
      accounts.conclude(write, isDone: true)
    }
    #expect(try !hasRoom(Self.account("c")) && hasRoom(Self.account("B")))
    #expect(try hasRoom(Self.account("B"), [:]))
    #expect(try !hasRoom(Self.account("B"), ["text": .string(String(repeating: "x", count: 300))]))
  }

  @Test("Ten failures with a name from an address, and thirty from an address, are the most in a minute")
  func failures() throws {
    var failures = SignInFailures()
    let (here, there) = (ClientAddress(digest: 1, 1), ClientAddress(digest: 2, 2))
    func fails(_ name: String, _ client: ClientAddress, at time: Int64) -> Int? {
      do throws(SignInFailures.Refusal) {
        _ = try failures.begin(AccountName(name), from: client, at: time)
        return nil
      } catch { return error.seconds }
    }
    for second in 0..<10 { #expect(fails("ann", here, at: Int64(second) * 1_000) == nil) }
    #expect(fails("ann", here, at: 10_000) == 50, "the first was at 0")
    #expect(fails("ann", there, at: 10_000) == nil, "others' failures lock nobody out")
    for _ in 0..<20 { #expect(fails("n\(Int.random(in: 0...1 << 40))", here, at: 10_000) == nil) }
    #expect(fails("bob", here, at: 10_000) == 50)
    #expect(fails("bob", here, at: 60_000) == nil, "one has been a minute ago")
    // What succeeds does not count.
    for _ in 0..<100 {
      let attempt = try failures.begin(AccountName("eve"), from: there, at: 20_000)
      failures.takeBack(attempt)
    }
    failures.sweep(at: 200_000)
    #expect(failures.addressCount == 0)
  }
}
