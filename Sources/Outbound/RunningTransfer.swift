import CCurl
import Support

/// A transfer that libcurl works on, and the memory that it uses for that. The thread of all transfers has it.
final class RunningTransfer {
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
    guard let handle = curl_easy_init() else { throw Self.lacksMemory }
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

  /// The fault where the system has no memory left.
  static var lacksMemory: OutboundFault {
    OutboundFault(.overloaded, "the system has no memory left for the request", isUnsent: true)
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

  /// The transfer that libcurl gives back to a callback. It lives as long as its handle.
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
    // A status below says that another head comes (RFC 9110, section 15.2).
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

  /// Takes libcurl's verdict.
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
    // libcurl says the second also of an answer that is not HTTP.
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
