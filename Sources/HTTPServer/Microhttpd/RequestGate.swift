import Glibc

/// What stands between a socket and libmicrohttpd: reads the requests of one connection strictly, and hands on bytes of
/// none but good ones.
///
/// libmicrohttpd 0.9.75 parses what it has read at once. It takes white space before a colon, folded lines, a second
/// `Host`, a bare line feed; waits for ever behind a transfer coding that it does not know; and of what it refuses,
/// some it answers with two heads, some without any. So a head is handed on only when it is whole and right, and the
/// lines between and behind chunks only if they are right. libmicrohttpd then finds nothing to refuse by itself.
///
/// Where bytes come as they mostly do, a whole head at a time, they are read into libmicrohttpd's own buffer and looked
/// at there, once. A head that comes in pieces is collected here. Used by the one thread that the connection belongs
/// to.
struct RequestGate {
  /// What libmicrohttpd's read gives.
  enum Reception: Equatable {
    /// So many bytes are in the buffer; 0 is the end.
    case bytes(Int)
    /// Nothing can be handed on yet.
    case nothing
    /// The system's error.
    case failed(errno: Int32)
    /// The client is to be told this, and the connection ends. Everything before it has been answered.
    case refused(RequestFault)
  }

  private enum Place {
    case head(RequestHeadReader)
    case content(remaining: Int)
    case chunks(ChunkReader)
    case trailer(TrailerReader)
  }

  /// Whether the last request is a HEAD request, whose answer has no body.
  private(set) var isHeadMethod = false
  /// What is known, for its answer, of a request that is refused, and of one whose body comes in chunks, any of which
  /// may be refused.
  private(set) var marks: HeadMarks?
  /// Whether the last call has left bytes with the kernel that libmicrohttpd is not going to ask for by itself. It
  /// takes fewer bytes than it wanted for a sign that no more are there, and waits until the kernel reports new ones.
  private(set) var leavesBytes = false
  private let limits: RequestHeadReader.Limits
  private var place: Place
  /// What was read and not handed on: `readyCount` bytes that may be, or else an incomplete head or trailer.
  private var held: [UInt8] = []
  private var readyCount = 0
  private var fault: RequestFault?

  init(limits: RequestHeadReader.Limits) {
    self.limits = limits
    place = .head(RequestHeadReader(limits: limits))
  }

  /// Whether everything that was read was handed on.
  var isEmpty: Bool { held.isEmpty && fault == nil }

  /// Whether the head of a request has come in part.
  var hasPartOfHead: Bool {
    if case .head = place { return held.count > readyCount }
    return false
  }

  /// Reads for libmicrohttpd, as recv(2) would. `source` gives the number of bytes that it read, 0 at the end, or the
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

  /// Reads more of what has begun to come, until it is whole, or wrong, or nothing more is there. Gives what the last
  /// read gave.
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

  /// Reads what else has come of the head of a request that is refused: its answer may find its marks there. Nothing is
  /// waited for.
  private mutating func readRestOfHead(from source: (UnsafeMutableRawBufferPointer) -> Int) {
    withUnsafeTemporaryAllocation(byteCount: Self.pieceBytes, alignment: 1) { piece in
      while marks?.isOver == false {
        let count = source(piece)
        guard count > 0 else { return }
        marks?.read(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      }
    }
  }

  /// Hands on what is ready, behind what the buffer has already.
  private mutating func fill(_ buffer: UnsafeMutableRawBufferPointer, behind start: Int) -> Reception {
    let count = min(readyCount, buffer.count - start)
    if count > 0 {
      held.withUnsafeBytes { buffer[start...].rebased.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      held.removeFirst(count)
      readyCount -= count
    }
    var filled = start + count
    if filled == 0 { return fault.map { .refused($0) } ?? .nothing }
    // The answer to what is refused waits until libmicrohttpd has answered what came before it, and reads again. It
    // does so by itself where its buffer was filled, and it skips empty lines before a request.
    if fault != nil, readyCount == 0 {
      for index in filled..<buffer.count { buffer[index] = .lineFeed }
      filled = buffer.count
    }
    if filled == buffer.count { leavesBytes = false }
    return .bytes(filled)
  }

  private static let pieceBytes = 4096

  // MARK: Judging

  /// Judges bytes that follow those of the call before, but for those that it left. Gives how many of the first of them
  /// may be handed on. The rest is an incomplete head or trailer, or, where `fault` is set, of no use.
  private mutating func pass(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
    var position = 0
    // Where the request begins that is being read, if it does so in these bytes.
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

  /// What may be handed on is what comes before the request; where libmicrohttpd has a part of the request already,
  /// nothing more.
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

  /// Trailer fields are read by nobody, and libmicrohttpd would need memory for them: in their place it gets the end of
  /// the body, and empty lines, which it skips before the next request.
  private static func hideTrailer(_ trailer: UnsafeMutableRawBufferPointer) {
    for index in trailer.indices { trailer[index] = .lineFeed }
    trailer[0] = .carriageReturn
    trailer[1] = .lineFeed
  }
}

/// What the answer to a request has to have of its head, where libmicrohttpd never hears of the request: read from as
/// much of the head as has come, mistakes or not.
///
/// It is given the bytes of the head in pieces, and looks at nothing but the lines of these fields.
struct HeadMarks {
  /// The id that the client gave the request; nil where it gave none, none that is one, or several.
  private(set) var requestID: RequestID?
  /// The page that sends the request (`Origin`, Fetch standard); nil where it is not said once.
  private(set) var origin: String?
  /// Whether nothing more is looked at: the head has ended, or has as many bytes as are looked at.
  private(set) var isOver = false
  private var hasRequestID = false
  private var hasOrigin = false
  private var hasFirstLine = false
  private var byteCount = 0
  /// The line that has not ended, as far as one of the fields may be in it.
  private var line: [UInt8] = []

  /// The most bytes of a head that are looked at.
  static let byteLimit = 65_536
  /// The longest line that has one of the fields.
  private static let lineLimit = 512

  /// Reads on in the head.
  mutating func read(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes.prefix(Self.byteLimit - byteCount)
    byteCount += rest.count
    while !isOver, let end = rest.firstIndex(of: .lineFeed) {
      append(rest[..<end])
      takeLine()
      rest = rest[(end + 1)...]
    }
    if !isOver { append(rest) }
    if byteCount >= Self.byteLimit { isOver = true }
  }

  private mutating func append(_ part: Slice<UnsafeRawBufferPointer>) {
    line.append(contentsOf: part.prefix(Self.lineLimit + 1 - line.count))
  }

  private mutating func takeLine() {
    var line: [UInt8] = []
    swap(&line, &self.line)
    if line.last == .carriageReturn { line.removeLast() }
    // An empty line before the first is ignored (RFC 9112 §2.2).
    if line.isEmpty { isOver = hasFirstLine }
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
