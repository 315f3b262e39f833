import CCurl
import Glibc
import Support

/// The thread of all transfers: starts them, lets libcurl work on them, and tells their readers.
final class TransferLoop {
  private let queue: TransferQueue
  private let multi: UnsafeMutableRawPointer
  private let caFile: String?
  private let limits: OutboundClient.Limits
  private var running: [UnsafeMutableRawPointer: RunningTransfer] = [:]
  private var handles: [ObjectIdentifier: UnsafeMutableRawPointer] = [:]
  /// Transfers of which something came in this round.
  private var changed: [TransferCore] = []
  private var hasStopped = false

  /// libcurl waits for its own timers; this bounds the wait if there are none. In milliseconds.
  private static let longestWait: Int32 = 60_000

  /// Makes the loop of a queue.
  init(_ queue: TransferQueue, caFile: String?, _ limits: OutboundClient.Limits) {
    self.queue = queue
    self.caFile = caFile
    self.limits = limits
    multi = queue.multi.handle
    keyway_keep_connections(multi, limits.idleConnections)
  }

  /// Works until it is told to stop.
  func run() {
    Self.blockBrokenPipes()
    while !hasStopped {
      for command in queue.takeCommands() { perform(command) }
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      finishTransfers()
      notify()
      if !hasStopped { curl_multi_poll(multi, nil, 0, Self.longestWait, nil) }
    }
    for transfer in running.values {
      transfer.core.state.withLock { $0.fail(Self.stopped(isUnsent: !$0.isSent)) }
      end(transfer)
    }
    for case .start(let core) in queue.close() {
      core.state.withLock { $0.fail(Self.stopped(isUnsent: true)) }
      changed.append(core)
    }
    notify()
  }

  private func notify() {
    for core in changed { core.notify() }
    changed = []
  }

  /// OpenSSL writes to sockets whose other side may be gone, and libcurl, told to leave signals alone, does not prevent
  /// the signal that this raises on the calling thread.
  private static func blockBrokenPipes() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  private static func stopped(isUnsent: Bool) -> OutboundFault {
    OutboundFault(.cancelled, "this program is about to stop", isUnsent: isUnsent)
  }

  private func perform(_ command: TransferQueue.Command) {
    switch command {
    case .start(let core): start(core)
    case .resume(let core):
      // The content that was refused comes before the call returns.
      if let handle = handles[ObjectIdentifier(core)] { curl_easy_pause(handle, CURLPAUSE_RECV_CONT) }
    case .cancel(let core):
      if let handle = handles[ObjectIdentifier(core)], let transfer = running[handle] { end(transfer) }
    case .stop: hasStopped = true
    }
  }

  private func start(_ core: TransferCore) {
    guard !core.state.withLock({ $0.isOver }) else { return queue.noteEnd() }
    do throws(OutboundFault) {
      let transfer = try RunningTransfer(core, caFile: caFile, limits) { [unowned self] in changed.append($0) }
      running[transfer.handle] = transfer
      handles[ObjectIdentifier(core)] = transfer.handle
      guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
        core.state.withLock { $0.fail(RunningTransfer.lacksMemory) }
        return end(transfer)
      }
    } catch {
      core.state.withLock { $0.fail(error) }
      changed.append(core)
      queue.noteEnd()
    }
  }

  private func finishTransfers() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
        let transfer = running[handle]
      else { continue }
      transfer.finish(message.pointee.data.result)
      end(transfer)
    }
  }

  private func end(_ transfer: RunningTransfer) {
    curl_multi_remove_handle(multi, transfer.handle)
    running[transfer.handle] = nil
    handles[ObjectIdentifier(transfer.core)] = nil
    queue.noteEnd()
    changed.append(transfer.core)
  }
}
