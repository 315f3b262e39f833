import Foundation
import Glibc
import Support
import TestKit

/// A server of one test: the first connection gets the first answer, the second the second, and is closed behind it.
final class ScriptedServer: Sendable {
  private let listener: LoopbackListener
  private let heads = Locked<[String]>([])

  /// What was asked, one head per connection.
  var requests: [String] { heads.withLock { $0 } }

  /// The address for a client.
  var address: String { "http://127.0.0.1:\(listener.port)" }

  init(_ answers: [String]) throws {
    listener = try LoopbackListener()
    Thread { [self] in for answer in answers { serve(answer) } }.start()
  }

  private func serve(_ answer: String) {
    guard let connection = listener.accept() else { return }
    defer { close(connection) }
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(connection, &byte, 1, 0) == 1 { head.append(byte) }
    heads.withLock { $0.append(String(decoding: head, as: UTF8.self)) }
    let bytes = Array(answer.utf8)
    send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    shutdown(connection, Int32(SHUT_WR))
    // Not closed before the client has read: a reset would take the answer away.
    while recv(connection, &byte, 1, 0) == 1 {}
  }
}
