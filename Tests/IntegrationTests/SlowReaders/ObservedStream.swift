import Foundation
import KeyValueModel
import Support
import TestKit

/// Two streams with the same observations: one that is always read, by a thread of its own, and one that is read now
/// and then.
final class ObservedStream {
  /// The progress of the stream that is always read.
  private struct Progress {
    var shown = ShownState()
    var heard = 0
    var isFinished = false
  }

  let name: String
  /// The names of the streams, if they have cells: the slow one's first.
  let streams: [String]
  private(set) var slow = ShownState()
  private(set) var heard = 0
  private let stream: WireStream
  private let progress: Locked<Progress>

  /// Opens both. `body` is that of a stream with cells.
  init(_ name: String, _ client: WireClient, _ target: String, body: String? = nil) throws {
    self.name = name
    let method = body == nil ? "GET" : "POST"
    stream = try client.stream(target, method: method, body: body, receiveBufferBytes: 4096)
    let twin = try client.stream(target, method: method, body: body)
    var names: [String] = []
    if body != nil {
      for stream in [stream, twin] { names.append(try stream.next().json["stream"].text ?? "") }
    }
    streams = names
    let progress = Locked(Progress())
    self.progress = progress
    let box = UnsafeTwin(stream: twin)
    Thread.detachNewThread { Self.read(box.stream, into: progress) }
  }

  /// A stream that only one thread reads: it is created here and handed over.
  private struct UnsafeTwin: @unchecked Sendable {
    let stream: WireStream
  }

  private static func read(_ stream: WireStream, into progress: Locked<Progress>) {
    while let event = try? stream.block(before: Deadline()) {
      let heard = revision(stream.lastID)
      progress.withLock {
        $0.shown.apply(event)
        $0.heard = heard
      }
    }
    progress.withLock { $0.isFinished = true }
  }

  private static func revision(_ id: String?) -> Int { id?.split(separator: "-").last.flatMap { Int($0) } ?? 0 }

  /// Reads until the client has reached a revision, or has read so many events.
  func read(to revision: Int, atMost count: Int = .max) throws {
    var count = count
    while heard < revision, count > 0, let event = try stream.block(before: Deadline()) {
      slow.apply(event)
      heard = Self.revision(stream.lastID)
      count -= 1
    }
  }

  /// Reads to the end of the response. Returns false if it was cut off.
  func readToEnd() throws -> Bool {
    while let event = try stream.block(before: Deadline()) { slow.apply(event) }
    return stream.isComplete
  }

  /// Returns the state of the stream that is always read, once it has reached a revision, or its end.
  func twin(at revision: Int) -> ShownState {
    _ = Deadline().awaits { progress.withLock { $0.heard >= revision || $0.isFinished } }
    return progress.withLock(\.shown)
  }
}
