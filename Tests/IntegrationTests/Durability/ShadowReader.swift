import Foundation
import KeyValueModel
import Support
import TestKit

/// A reader of one stream on a thread of its own, which resumes from the last id whenever the stream ends, and stores
/// the events.
///
/// The compared text is that of each block, without `retry:` lines and with the store's epoch replaced. Heartbeats,
/// comments, `open` and `bye` belong to the connection and are left out. A block counts once the one with the id of its
/// commit has come: a block that was cut off before that comes again.
final class ShadowReader: Sendable {
  private struct State {
    var blocks: [String] = []
    var lastID: String?
    var connections = 0
    var cells: JSONObject?
    var descriptor: Int32 = -1
    var isFinished = false
    var isStopped = false
    var failure: String?
  }

  let observation: ShadowObservation
  private let port: Locked<UInt16>
  private let epoch: String
  private let state: Locked<State>

  /// Starts to read from the server that listens on `port` at the time; 0 is none.
  init(_ observation: ShadowObservation, port: Locked<UInt16>, epoch: String) {
    self.observation = observation
    self.port = port
    self.epoch = epoch
    state = Locked(State(cells: observation.cells))
    Thread.detachNewThread { [self] in
      while !state.withLock({ $0.isFinished || $0.isStopped }) {
        do { try read() } catch { note(error) }
        usleep(2000)
      }
    }
  }

  /// The blocks that were received.
  var blocks: [String] { state.withLock { $0.blocks } }
  /// The number of connections.
  var connections: Int { state.withLock { $0.connections } }
  /// The first fault of the stream; nil for none.
  var failure: String? { state.withLock { $0.failure } }

  /// Returns true if everything up to a revision was received, or the observed object is gone.
  func has(_ revision: Int) -> Bool {
    state.withLock { state in
      if state.isFinished { return true }
      return state.lastID?.split(separator: "-").last.flatMap { Int($0) }.map { $0 >= revision } ?? false
    }
  }

  /// True if it is connected, or the observed object is gone.
  var isConnected: Bool { state.withLock { $0.descriptor >= 0 || $0.isFinished } }

  /// Cuts the connection.
  func cut() {
    state.withLock { state in
      if state.descriptor >= 0 { shutdown(state.descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Ends the thread.
  func stop() {
    state.withLock { $0.isStopped = true }
    cut()
  }

  private func note(_ error: any Error) {
    guard let error = error as? LoopbackError, case .unexpectedStatus(let status) = error.reason, status != 503 else {
      return
    }
    state.withLock {
      $0.failure = error.description
      $0.isFinished = true
    }
  }

  private func read() throws {
    let port = port.withLock { $0 }
    guard port > 0 else { return }
    let (lastID, cells) = state.withLock { ($0.lastID, $0.cells) }
    var headers: [String: String] = [:]
    headers["Last-Event-ID"] = lastID
    let body = cells.map { Value.object(["cells": .object($0)]).json }
    let stream = try WireClient(port: port).stream(
      observation.path, headers, method: body == nil ? "GET" : "POST", body: body)
    state.withLock {
      $0.descriptor = stream.socket.descriptor
      $0.connections += 1
    }
    defer {
      // Before the descriptor is closed and may be reused.
      state.withLock { $0.descriptor = -1 }
      stream.socket.close()
    }
    var pending: [WireEvent] = []
    while let block = try stream.block(before: Deadline()) { take(block, &pending) }
  }

  private func take(_ block: WireEvent, _ pending: inout [WireEvent]) {
    let isOfConnection = block.data == nil || ["heartbeat", "open", "bye"].contains(block.name)
    if !isOfConnection { pending.append(block) }
    guard let id = block.id else { return }
    let committed = pending
    pending = []
    state.withLock { state in
      state.lastID = id
      for event in committed {
        state.blocks.append(event.withoutRetry.text.replacing("\(epoch)-", with: "EPOCH-"))
        guard event.name == "gone" else { continue }
        // An empty cell stays empty; a stream of one object has ended.
        if let cell = event.json["cell"].text { state.cells?[cell] = .object(["object": .null]) }
        if observation.endsWithObject { state.isFinished = true }
      }
    }
  }
}
