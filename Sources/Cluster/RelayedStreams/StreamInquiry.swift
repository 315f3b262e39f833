import Glibc
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Outbound
import Store

/// Asks other nodes about their streams that a write names for objects to be bound to: whether each stream exists for
/// the client that writes, and its number. The write is handled again when they have answered. A stream is left out,
/// and so does not exist for the write, if it is gone or its node is unknown or accepts no connection.
final class StreamInquiry: Sendable {
  private let directory: NodeDirectory
  private let clients: NodeClients
  /// The time limit for an answer.
  private let patience: Duration
  private let began: ContinuousClock.Instant
  /// True if questions include the client's credentials, because the other nodes authenticate clients.
  private let hasCredentials: Bool

  /// The maximum number of streams of other nodes that a write may name.
  static let most = 100
  /// The time after its start during which a node waits for followers to reconnect that know it from before.
  private static let youth = Duration.seconds(5)
  /// The time between two lookups, in microseconds.
  private static let pause: UInt32 = 100_000
  private static let answerBytes = 1 << 16

  /// Creates an inquiry to the nodes of a directory, with the credentials of clients if `hasCredentials`; `patience` is
  /// the time limit for a node's answer.
  init(
    _ options: ClusterOptions, _ directory: NodeDirectory, hasCredentials: Bool, patience: Duration,
    by outbound: OutboundClient
  ) {
    self.directory = directory
    self.hasCredentials = hasCredentials
    self.patience = patience
    began = .now
    clients = NodeClients(options.forwarding) { NodeClient($0, keeping: options.forwarding.connections, by: outbound) }
  }

  /// The number of writes that wait for another node's answer.
  var waitingCount: Int { clients.waitingCount }

  /// Defers a write that names streams of other nodes; returns nil if it names none. Throws `invalid-value` if it names
  /// too many, and `overloaded`.
  func response(to request: borrowing Request, _ route: Route) throws(Problem) -> HandlerResponse? {
    guard !directory.isAlone || isYoung else { return nil }
    let named = LifetimeReader.streams(namedBy: request, isTransaction: route.isTransaction)
    var streams: [String: NodeMark] = [:]
    for name in named {
      if let mark = StreamNames.maker(of: name), mark != directory.mark { streams[name] = mark }
    }
    guard !streams.isEmpty else { return nil }
    guard streams.count <= Self.most else {
      throw Problem(
        .invalidValue, "the write names \(streams.count) streams of other nodes; the maximum is \(Self.most)")
    }
    let sender = request.client
    guard let pool = clients.pool() else { throw Self.overload }
    var question = NodeRequest(passing: request, fields: [], hasCredentials: hasCredentials)
    (question.method, question.body) = (HTTPRequest.Method.get.rawValue, [])
    // The node that is asked must answer itself.
    question.fields.append((HTTPField.Name.keywayForwarded.rawName, directory.mark.text))
    request.keepBody()
    return .deferred { [self, streams, question] completion in
      let isAccepted = pool.submit(for: sender) { [self] in
        guard !completion.isAbandoned else { return completion.respond(Self.overload.response) }
        do throws(Problem) {
          completion.handleAgain(with: NamedStreams(numbers: try numbers(of: streams, question)))
        } catch {
          completion.respond(error.response)
        }
      }
      if !isAccepted { completion.respond(Self.overload.response) }
    }
  }

  /// Cancels the requests under way.
  func stop() { clients.stop() }

  private static var overload: Problem {
    Problem(
      .overloaded,
      "too many requests are being forwarded: nodes.forwarding is the limit, a quarter of it for one client; "
        + "nothing was changed")
  }

  private var isYoung: Bool { began + Self.youth > .now }

  // MARK: On a thread of the pool

  private func numbers(
    of streams: [String: NodeMark], _ question: NodeRequest
  ) throws(Problem) -> [String: UInt64] {
    var numbers: [String: UInt64] = [:]
    for (name, mark) in streams {
      guard let address = address(of: mark), let client = clients.client(of: address) else { continue }
      var question = question
      question.target = "/v1/nodes/streams/\(name)"
      if let number = try number(question, client) { numbers[name] = number }
    }
    return numbers
  }

  private func address(of mark: NodeMark) -> NodeAddress? {
    while true {
      let isYoung = isYoung && clients.pool() != nil
      if let address = directory.address(of: mark) { return address }
      guard isYoung else { return nil }
      usleep(Self.pause)
    }
  }

  /// Returns the number of the stream on the other node; nil if the stream does not exist for the client.
  private func number(_ question: NodeRequest, _ client: NodeClient) throws(Problem) -> UInt64? {
    let answer: NodeAnswer
    do throws(NodeFault) {
      answer = try client.sendRepeatable(question, silence: patience, limit: Self.answerBytes)
    } catch {
      guard error.isSilence, !error.isUnsent else { return nil }
      throw Problem(
        .overloaded,
        "the write names a stream of \(client.address), which does not answer within nodes.waitSeconds; "
          + "nothing was changed")
    }
    switch answer.status {
    case 200:
      // A node that numbers its streams from 1 has a journal of its own, and does not belong to this cluster.
      guard case .object(let body)? = try? Value(json: answer.body), case .integer(let number)? = body["number"],
        number > 0, StreamNumbers.node(of: UInt64(number)) != 0
      else { return nil }
      return UInt64(number)
    case 401, 403, 404: return nil
    case let status:
      throw Problem(
        .overloaded, "the write names a stream of \(client.address), which answers \(status); nothing was changed")
    }
  }
}

/// The streams of other nodes that a write names for objects to be bound to, by name: those that exist for the client
/// that writes, with their numbers.
struct NamedStreams: Sendable {
  let numbers: [String: UInt64]
}
