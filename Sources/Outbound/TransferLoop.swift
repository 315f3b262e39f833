import CCurl
import Glibc
import Support

/// The thread of all transfers: starts them, lets libcurl work on them, and notifies their readers.
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

  /// Works until a `stop` command.
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

  /// Blocks SIGPIPE on the thread. OpenSSL writes to sockets whose other side may be gone, and libcurl, which must
  /// leave signals alone, does not prevent the signal that this raises on the calling thread.
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
    guard !core.state.withLock({ $0.hasEnded }) else { return queue.noteEnd() }
    do throws(OutboundFault) {
      let transfer = try RunningTransfer(core, caFile: caFile, limits) { [unowned self] in changed.append($0) }
      running[transfer.handle] = transfer
      handles[ObjectIdentifier(core)] = transfer.handle
      guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
        core.state.withLock { $0.fail(OutboundFault.lacksMemory) }
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

/// A transfer that libcurl works on, and the memory that it uses for that. The thread of all transfers has it.
private final class RunningTransfer {
  let core: TransferCore
  /// libcurl's handle.
  let handle: UnsafeMutableRawPointer
  private let hasNews: (TransferCore) -> Void
  private let headLimit: Int
  private var headBytes = 0
  private var receivedFields: [(name: String, value: String)] = []
  private var fields: UnsafeMutablePointer<curl_slist>?
  private var connectTo: UnsafeMutablePointer<curl_slist>?
  private let error: UnsafeMutablePointer<CChar>

  /// Prepares a transfer. `hasNews` is called when something comes.
  init(
    _ core: TransferCore, caFile: String?, _ limits: OutboundClient.Limits, hasNews: @escaping (TransferCore) -> Void
  ) throws(OutboundFault) {
    guard let lines = core.request.lines else {
      throw OutboundFault(.invalid, "the request has a line break or NUL in its head", isUnsent: true)
    }
    guard let handle = curl_easy_init() else { throw .lacksMemory }
    (self.core, self.handle, self.hasNews, headLimit) = (core, handle, hasNews, limits.headBytes)
    error = .allocate(capacity: Int(CURL_ERROR_SIZE))
    error.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    for line in lines { fields = curl_slist_append(fields, line) }
    connectTo = core.request.connectTo.flatMap { curl_slist_append(nil, $0) }
    let code = prepare(caFile, idleSeconds: limits.idleSeconds)
    guard code == CURLE_OK else {
      throw OutboundFault(.invalid, "the request cannot be sent: \(reason(code))", isUnsent: true)
    }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(fields)
    curl_slist_free_all(connectTo)
    error.deallocate()
  }

  private func prepare(_ caFile: String?, idleSeconds: Int) -> CURLcode {
    let request = core.request
    var transfer = keyway_transfer()
    (transfer.fields, transfer.connect_to, transfer.error) = (fields, connectTo, error)
    (transfer.has_body, transfer.is_head) = (request.hasBody, request.method == "HEAD")
    transfer.connect_milliseconds = max(1, request.connectTime.milliseconds)
    transfer.idle_seconds = idleSeconds
    transfer.context = Unmanaged.passUnretained(self).toOpaque()
    transfer.begun = { context, _, _, _, _ in RunningTransfer.at(context).begin() }
    transfer.head_line = { RunningTransfer.at($3).receiveLine(UnsafeRawBufferPointer(start: $0, count: $1 * $2)) }
    transfer.content = { RunningTransfer.at($3).receive(UnsafeRawBufferPointer(start: $0, count: $1 * $2)) }
    // The byte behind the body makes its address one even where it is empty.
    return (request.body + [0]).withUnsafeBytes { body in
      (transfer.body, transfer.body_bytes) = (body.baseAddress, curl_off_t(body.count - 1))
      return (request.origin + "/").withCString { url in
        request.target.withCString { target in
          request.method.withCString { method in
            (transfer.url, transfer.target, transfer.method) = (url, target, method)
            guard let caFile else { return keyway_prepare_transfer(handle, &transfer) }
            return caFile.withCString { file in
              transfer.ca_file = file
              return keyway_prepare_transfer(handle, &transfer)
            }
          }
        }
      }
    }
  }

  // MARK: libcurl's callbacks

  /// Returns the transfer that libcurl passes to a callback. It lives as long as its handle.
  private static func at(_ context: UnsafeMutableRawPointer?) -> RunningTransfer {
    guard let context else { preconditionFailure("a callback without its transfer") }
    return Unmanaged.fromOpaque(context).takeUnretainedValue()
  }

  private func begin() -> Int32 {
    core.state.withLock { $0.beginSending() } ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
  }

  /// Takes a line of a head or of trailers. Less than its count ends the transfer.
  private func receiveLine(_ line: UnsafeRawBufferPointer) -> Int {
    headBytes += line.count
    guard headBytes <= headLimit else {
      core.state.withLock {
        $0.fail(OutboundFault(.oversized, "the response has a head of more than \(headLimit) bytes", isUnsent: false))
      }
      return 0
    }
    // What comes after the head are trailers.
    guard core.state.withLock({ $0.head == nil }) else { return line.count }
    let text = String(decoding: line, as: UTF8.self).trimmingSuffix { $0.isNewline }
    if let colon = text.firstIndex(of: ":"), colon > text.startIndex, !text.hasPrefix("HTTP/") {
      let value = text[text.index(after: colon)...].trimmingPrefix(while: Self.isSpace).trimmingSuffix(Self.isSpace)
      receivedFields.append((String(text[..<colon]), String(value)))
    }
    guard text.isEmpty else { return line.count }
    let status = keyway_response_status(handle)
    // A lower status means that another head comes (RFC 9110, section 15.2).
    if status >= 200 {
      core.state.withLock { $0.receive(OutboundResponse(status: status, fields: receivedFields)) }
      hasNews(core)
    }
    receivedFields = []
    return line.count
  }

  private static func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }

  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    switch core.state.withLock({ $0.receive(bytes) }) {
    case .taken:
      hasNews(core)
      return bytes.count
    case .full: return Int(CURL_WRITEFUNC_PAUSE)
    // Any other count than that of the bytes ends the transfer.
    case .refused: return bytes.isEmpty ? 1 : 0
    }
  }

  // MARK: The end

  /// Records libcurl's result.
  func finish(_ code: CURLcode) {
    guard code != CURLE_OK else { return core.state.withLock { $0.complete() } }
    let reason = reason(code)
    core.state.withLock { state in
      state.fail(OutboundFault(Self.kind(of: code, isSent: state.isSent), reason, isUnsent: !state.isSent))
    }
  }

  private static func kind(of code: CURLcode, isSent: Bool) -> OutboundFault.Kind {
    switch code {
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR: .untrusted
    // libcurl also reports the second one for an answer that is not HTTP.
    case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: isSent ? .interrupted : .invalid
    case CURLE_OUT_OF_MEMORY: .overloaded
    case CURLE_OPERATION_TIMEDOUT: isSent ? .timeout : .unreachable
    default: isSent ? .interrupted : .unreachable
    }
  }

  private func reason(_ code: CURLcode) -> String {
    error.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: error)
  }
}

extension Duration {
  /// Whole milliseconds.
  fileprivate var milliseconds: Int {
    Int(components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000)
  }
}

extension StringProtocol where SubSequence == Substring {
  /// The text without the characters at its end that satisfy a condition.
  fileprivate func trimmingSuffix(_ isTrimmed: (Character) -> Bool) -> Substring {
    guard let last = lastIndex(where: { !isTrimmed($0) }) else { return self[startIndex..<startIndex] }
    return self[...last]
  }
}

/// The commands to the thread of all transfers, and the means to wake it.
///
/// `state` is guarded by its lock, which is taken while no other is held.
final class TransferQueue: Sendable {
  /// A command; each transfer is started once.
  enum Command {
    case start(TransferCore)
    case resume(TransferCore)
    case cancel(TransferCore)
    case stop
  }

  /// libcurl's set of transfers. Its thread alone uses it, but for `curl_multi_wakeup`, which libcurl lets any thread
  /// call; that is done under the lock under which the thread takes it away before it frees it.
  fileprivate struct Multi: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
  }

  private struct State {
    var multi: Multi?
    var commands: [Command] = []
    /// The number of transfers that were started and have not ended.
    var count = 0
  }

  private let state: Locked<State>
  /// The set of transfers of the thread that takes the commands.
  fileprivate let multi: Multi

  /// Makes a queue, or returns nil if there is no memory or descriptor left.
  init?() {
    guard Self.isInitialized, let handle = curl_multi_init() else { return nil }
    multi = Multi(handle: handle)
    state = Locked(State(multi: multi))
  }

  /// True if libcurl is initialized, which happens once in a process; Foundation may have done so before, which is
  /// counted.
  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_SSL)) == CURLE_OK

  /// The number of transfers under way.
  var count: Int { state.withLock { $0.count } }

  /// Starts a transfer. False if there are `limit` already, or the thread has ended.
  func start(_ core: TransferCore, limit: Int) -> Bool {
    state.withLock { state in
      guard let multi = state.multi, state.count < limit else { return false }
      state.count += 1
      state.commands.append(.start(core))
      curl_multi_wakeup(multi.handle)
      return true
    }
  }

  /// Posts a command. It has no effect once the thread has ended.
  func post(_ command: Command) {
    state.withLock { state in
      guard let multi = state.multi else { return }
      state.commands.append(command)
      curl_multi_wakeup(multi.handle)
    }
  }

  // MARK: The thread

  /// Takes the commands, in the order in which they were posted.
  fileprivate func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }

  /// Notes that a transfer has ended.
  fileprivate func noteEnd() { state.withLock { $0.count -= 1 } }

  /// Frees the set, which has no transfers any more. Returns the commands that will not be carried out.
  func close() -> [Command] {
    let commands = state.withLock { state in
      defer { (state.multi, state.commands) = (nil, []) }
      return state.commands
    }
    curl_multi_cleanup(multi.handle)
    return commands
  }
}
