import Foundation
import Glibc

/// `keyway serve` as a child of the benchmark, always on the same port. It does not outlive its object.
final class MeasuredServer {
  private static let startSeconds = 60
  private static let endSeconds = 20

  private let arguments: [String]
  private var process: Process?
  /// Where it serves.
  let url: String

  /// A server that is not yet started, of a store in this folder, with further arguments.
  init(store: String, port: Int, _ arguments: [String]) {
    self.arguments = ["serve", "--port", "\(port)", "--set", "store=\(store)"] + arguments
    url = "http://127.0.0.1:\(port)"
  }

  deinit {
    guard let process, process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// A port that nobody listens on at the moment.
  static func freePort() throws(FanoutError) -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw FanoutError(call: "socket") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, length) == 0 ? getsockname(descriptor, address, &length) : -1
      }
    }
    guard result == 0 else { throw FanoutError(call: "bind") }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  /// Starts it, and returns when it is ready to serve.
  func start() throws(FanoutError) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    do {
      try Self.withoutBlockedSignals { try process.run() }
    } catch {
      throw FanoutError("keyway serve cannot be started: \(error)")
    }
    self.process = process
    let address = try SocketAddress(server: url)
    let deadline = MonotonicClock.now() + UInt64(Self.startSeconds) * 1_000_000_000
    while !Self.isReady(address) {
      guard process.isRunning else { throw FanoutError("keyway serve has ended: status \(process.terminationStatus)") }
      guard MonotonicClock.now() < deadline else { throw FanoutError("keyway serve is not ready in time") }
      usleep(10_000)
    }
  }

  /// Ends it with a signal, and returns when it has ended.
  func end(_ signal: Int32) throws(FanoutError) {
    guard let process else { return }
    kill(process.processIdentifier, signal)
    let deadline = MonotonicClock.now() + UInt64(Self.endSeconds) * 1_000_000_000
    while process.isRunning {
      guard MonotonicClock.now() < deadline else { throw FanoutError("keyway serve does not end") }
      usleep(5000)
    }
    self.process = nil
  }

  private static func isReady(_ address: SocketAddress) -> Bool {
    do throws(FanoutError) {
      try PublishingConnection(address, timeoutSeconds: 5).exchange(address.reading("/readyz"))
      return true
    } catch {
      return false
    }
  }

  /// A thread of Dispatch blocks all signals, and a program that it starts would inherit that: SIGTERM would never reach
  /// it.
  private static func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }
}
