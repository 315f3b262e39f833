import Glibc

/// The filter between a socket and libmicrohttpd: parses the requests of one connection strictly, and passes on only
/// the bytes of valid ones.
///
/// libmicrohttpd 0.9.75 parses what it has read immediately. It accepts white space before a colon, folded lines, a
/// second `Host`, and a bare line feed; it waits forever after a transfer coding that it does not know; and of the
/// requests that it refuses, it answers some with two heads, and some without any. So a head is passed on only when it
/// is complete and valid, and the lines between and after chunks only if they are valid. libmicrohttpd then finds
/// nothing to refuse itself.
///
/// If bytes arrive as they usually do, a whole head at a time, they are read into libmicrohttpd's own buffer and
/// checked there, once. A head that arrives in pieces is collected here. Used by the one thread that the connection
/// belongs to.
struct RequestGate {
  /// The result of libmicrohttpd's read.
  enum Reception: Equatable {
    /// The number of bytes in the buffer; 0 is the end.
    case bytes(Int)
    /// Nothing can be passed on yet.
    case nothing
    /// The system's error.
    case failed(errno: Int32)
    /// The fault to report to the client, after which the connection ends. Everything before it has been answered.
    case refused(RequestFault)
  }

  private enum Place {
    case head(RequestHeadReader)
    case content(remaining: Int)
    case chunks(ChunkReader)
    case trailer(TrailerReader)
  }

  /// True if the last request is a HEAD request, whose response has no body.
  private(set) var isHeadMethod = false
  /// The marks that the response needs of a refused request, and of a request whose body comes in chunks, any of which
  /// may be refused.
  private(set) var marks: HeadMarks?
  /// True if the last call has left bytes in the kernel that libmicrohttpd is not going to ask for itself. It concludes
  /// from fewer bytes than it wanted that there are no more, and waits until the kernel reports new ones.
  private(set) var leavesBytes = false
  private let limits: RequestHeadReader.Limits
  private var place: Place
  /// The bytes that were read and not passed on: `readyCount` bytes that may be, or an incomplete head or trailer.
  private var held: [UInt8] = []
  private var readyCount = 0
  private var fault: RequestFault?

  init(limits: RequestHeadReader.Limits) {
    self.limits = limits
    place = .head(RequestHeadReader(limits: limits))
  }

  /// True if everything that was read was passed on.
  var isEmpty: Bool { held.isEmpty && fault == nil }

  /// True if a part of a request's head has arrived.
  var hasPartOfHead: Bool {
    if case .head = place { return held.count > readyCount }
    return false
  }

  /// Reads for libmicrohttpd, as recv(2) would. `source` returns the number of bytes that it read, 0 at the end, or the
  /// negative `errno`.
  mutating func receive(
    into buffer: UnsafeMutableRawBufferPointer, from source: (UnsafeMutableRawBufferPointer) -> Int
  ) -> Reception {
    leavesBytes = false
    if readyCount > 0 {
      let reception = fill(buffer, behind: 0)
      if case .bytes(let count) = reception, count < buffer.count { leavesBytes = true }
      return reception
    }
    if let fault { return .refused(fault) }
    var count = 0
    if held.isEmpty {
      count = source(buffer)
      guard count > 0 else { return count == 0 ? .bytes(0) : .failed(errno: Int32(-count)) }
      let bytes = buffer[..<count].rebased
      let ready = pass(bytes)
      leavesBytes = count == buffer.count && ready < count
      if fault != nil {
        readRestOfHead(from: source)
        return fill(buffer, behind: ready)
      }
      if ready < count { held.append(contentsOf: bytes[ready...]) }
      if ready > 0 || !leavesBytes { return ready > 0 ? .bytes(ready) : .nothing }
    }
    count = collect(from: source)
    if readyCount == 0, fault == nil, count <= 0 { return count == 0 ? .bytes(0) : .failed(errno: Int32(-count)) }
    if fault != nil { readRestOfHead(from: source) }
    return fill(buffer, behind: 0)
  }

  /// Reads more of an incomplete head or trailer, until it is complete or refused, or nothing more is available.
  /// Returns the result of the last read.
  private mutating func collect(from source: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: Self.pieceBytes, alignment: 1) { piece in
      while true {
        let count = source(piece)
        guard count > 0 else { return count }
        var bytes: [UInt8] = []
        swap(&bytes, &held)
        bytes.append(contentsOf: piece[..<count])
        readyCount = bytes.withUnsafeMutableBytes { pass($0) }
        if fault != nil { bytes.removeLast(bytes.count - readyCount) }
        swap(&bytes, &held)
        leavesBytes = count == piece.count
        if readyCount > 0 || fault != nil || !leavesBytes { return count }
      }
    }
  }

  /// Reads the available rest of the head of a refused request, which may hold the marks for its response. Does not
  /// wait.
  private mutating func readRestOfHead(from source: (UnsafeMutableRawBufferPointer) -> Int) {
    withUnsafeTemporaryAllocation(byteCount: Self.pieceBytes, alignment: 1) { piece in
      while marks?.isFinished == false {
        let count = source(piece)
        guard count > 0 else { return }
        marks?.read(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      }
    }
  }

  /// Copies the ready bytes to the buffer, after those that it already holds.
  private mutating func fill(_ buffer: UnsafeMutableRawBufferPointer, behind start: Int) -> Reception {
    let count = min(readyCount, buffer.count - start)
    if count > 0 {
      held.withUnsafeBytes { buffer[start...].rebased.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      held.removeFirst(count)
      readyCount -= count
    }
    var filled = start + count
    if filled == 0 { return fault.map { .refused($0) } ?? .nothing }
    // The response to the refused request waits until libmicrohttpd has answered the requests before it, and reads
    // again. It does so by itself if its buffer was filled, and it skips empty lines before a request.
    if fault != nil, readyCount == 0 {
      for index in filled..<buffer.count { buffer[index] = .lineFeed }
      filled = buffer.count
    }
    if filled == buffer.count { leavesBytes = false }
    return .bytes(filled)
  }

  private static let pieceBytes = 4096

  // MARK: Checking

  /// Checks bytes that follow those of the previous call, starting with those that it left. Returns the number of
  /// leading bytes that may be passed on. The rest is an incomplete head or trailer, or useless if `fault` is set.
  private mutating func pass(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
    var position = 0
    // The start of the current request, if it is in these bytes.
    var requestStart: Int?
    while position < bytes.count {
      let rest = bytes[position...].rebased
      switch place {
      case .head(var reader):
        requestStart = position
        let progress = reader.read(rest)
        isHeadMethod = reader.isHeadMethod
        switch progress {
        case .complete(let byteCount, let framing):
          marks = framing == .chunks ? Self.marks(of: rest[..<byteCount].rebased) : nil
          position += byteCount
          begin(framing)
        case .incomplete:
          place = .head(reader)
          return position
        case .refused(let fault): return refuse(fault, from: requestStart, in: bytes)
        }
      case .content(let remaining):
        let count = min(remaining, rest.count)
        position += count
        place = count == remaining ? nextHead : .content(remaining: remaining - count)
      case .chunks(var reader):
        switch reader.read(rest) {
        case .going:
          place = .chunks(reader)
          return bytes.count
        case .last(let next):
          position += next
          place = .trailer(TrailerReader(limit: limits.memoryBytes / 2))
        case .refused(let fault): return refuse(fault, from: requestStart, in: bytes)
        }
      case .trailer(var reader):
        switch reader.read(rest) {
        case .complete(let byteCount):
          Self.hideTrailer(rest[..<byteCount].rebased)
          position += byteCount
          place = nextHead
        case .incomplete:
          place = .trailer(reader)
          return position
        case .refused(let fault): return refuse(fault, from: requestStart, in: bytes)
        }
      }
    }
    return position
  }

  private var nextHead: Place { .head(RequestHeadReader(limits: limits)) }

  private mutating func begin(_ framing: RequestHeadReader.Framing) {
    switch framing {
    case .none: place = nextHead
    case .length(let length): place = .content(remaining: length)
    case .chunks: place = .chunks(ChunkReader())
    }
  }

  /// Refuses the current request. Returns the number of bytes before it, which may be passed on; 0 if libmicrohttpd
  /// already has a part of the request.
  private mutating func refuse(
    _ fault: RequestFault, from requestStart: Int?, in bytes: UnsafeMutableRawBufferPointer
  ) -> Int {
    self.fault = fault
    guard let requestStart else { return 0 }
    marks = Self.marks(of: bytes[requestStart...].rebased)
    return requestStart
  }

  private static func marks(of head: UnsafeMutableRawBufferPointer) -> HeadMarks {
    var marks = HeadMarks()
    marks.read(UnsafeRawBufferPointer(head))
    return marks
  }

  /// Replaces the trailer fields, which no one reads and which would cost libmicrohttpd memory, by the end of the body
  /// and empty lines, which it skips before the next request.
  private static func hideTrailer(_ trailer: UnsafeMutableRawBufferPointer) {
    for index in trailer.indices { trailer[index] = .lineFeed }
    trailer[0] = .carriageReturn
    trailer[1] = .lineFeed
  }
}

/// The fields of a request's head that its response needs if libmicrohttpd never gets the request: read from the part
/// of the head that has arrived, with or without errors.
///
/// It is given the bytes of the head in pieces, and examines only the lines of these fields.
struct HeadMarks {
  /// The ID that the client gave the request; nil if it sent none, an invalid one, or several.
  private(set) var requestID: RequestID?
  /// The page that sends the request (`Origin`, Fetch standard); nil unless there is exactly one.
  private(set) var origin: String?
  /// True if nothing more is examined: the head has ended, or its first `byteLimit` bytes have been read.
  private(set) var isFinished = false
  private var hasRequestID = false
  private var hasOrigin = false
  private var hasFirstLine = false
  private var byteCount = 0
  /// The incomplete line, as far as it may hold one of the fields.
  private var line: [UInt8] = []

  /// The maximum number of bytes of a head that are examined.
  static let byteLimit = 65_536
  /// The maximum length of a line with one of the fields.
  private static let lineLimit = 512

  /// Reads the next bytes of the head.
  mutating func read(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes.prefix(Self.byteLimit - byteCount)
    byteCount += rest.count
    while !isFinished, let end = rest.firstIndex(of: .lineFeed) {
      append(rest[..<end])
      takeLine()
      rest = rest[(end + 1)...]
    }
    if !isFinished { append(rest) }
    if byteCount >= Self.byteLimit { isFinished = true }
  }

  private mutating func append(_ part: Slice<UnsafeRawBufferPointer>) {
    line.append(contentsOf: part.prefix(Self.lineLimit + 1 - line.count))
  }

  private mutating func takeLine() {
    var line: [UInt8] = []
    swap(&line, &self.line)
    if line.last == .carriageReturn { line.removeLast() }
    // An empty line before the first is ignored (RFC 9112 §2.2).
    if line.isEmpty { isFinished = hasFirstLine }
    if hasFirstLine, line.count <= Self.lineLimit { line.withUnsafeMutableBytes { note($0) } }
    if !line.isEmpty { hasFirstLine = true }
  }

  private mutating func note(_ line: UnsafeMutableRawBufferPointer) {
    guard !line.isEmpty, let field = try? FieldLine(line) else { return }
    switch field.name.count {
    case 6 where field.name.isCaseless("origin"):
      origin = hasOrigin ? nil : String(validating: field.trimmedValue(), as: UTF8.self)
      hasOrigin = true
    case 12 where field.name.isCaseless("x-request-id"):
      requestID = hasRequestID ? nil : RequestID(sent: UnsafeRawBufferPointer(field.trimmedValue()))
      hasRequestID = true
    default: break
    }
  }
}
