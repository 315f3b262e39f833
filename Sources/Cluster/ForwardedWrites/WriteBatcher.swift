import Glibc
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store
import Support
import Synchronization

/// Sends writes to one other node, several in one request if several wait.
///
/// A batch is received as a whole or not at all, so that a fault applies equally to all its writes. If it is not known
/// whether they were done, the node is asked again for all of them together.
final class WriteBatcher: Sendable {
  /// The time limits of a batcher.
  struct Times: Sendable {
    /// The time limit for each part of an answer.
    var silence: Duration
    /// The time limit for finding out the outcome of unanswered writes; nil if the node is not asked.
    var asking: Duration?
  }

  fileprivate final class Sender: Sendable {
    let client: NodeClient
    let times: Times
    let token: NodeToken
    let taking: RecordTaking?
    let hasStopped = Atomic(false)
    /// The time until which no batches are sent to the other node, which does not support them; nil if it may.
    let singlesUntil = Locked<ContinuousClock.Instant?>(nil)

    init(_ client: NodeClient, _ times: Times, _ token: NodeToken, _ taking: RecordTaking?) {
      (self.client, self.times, self.token, self.taking) = (client, times, token, taking)
    }
  }

  /// The time between two questions for the outcome of writes, in microseconds.
  fileprivate static let pause: UInt32 = 100_000
  /// The time for which no batches are sent to a node that does not support them. Afterwards it may have been upgraded.
  fileprivate static let singlesTime = Duration.seconds(60)

  private let sender: Sender
  private let threads: BatchThreads<OutgoingWrite>

  /// Creates a batcher for the node of a client; `token` proves to that node that the sender is a node. If `taking` is
  /// not nil, answers include records that it takes over, and a single write is sent as a batch too.
  init(
    _ client: NodeClient, _ limits: ClusterOptions.ForwardingLimits, _ times: Times, token: NodeToken,
    _ taking: RecordTaking? = nil
  ) {
    let sender = Sender(client, times, token, taking)
    self.sender = sender
    threads = BatchThreads(
      BatchSchedule.Limits(
        connections: limits.connections, waiting: limits.waiting, waitingPerClient: limits.waitingPerClient)
    ) { sender.send($0, asBatch: sender.taking != nil || $0.count > 1) }
  }

  deinit { stop() }

  /// Queues a write of a client for sending. Returns false if too many wait.
  func submit(_ write: OutgoingWrite, of client: ClientAddress) -> Bool {
    threads.submit(write, bytes: WriteBatch.byteCount(of: write.request), of: client)
  }

  /// Sends a write by itself on the calling thread, which blocks until the answer arrives.
  func sendAlone(_ write: OutgoingWrite) { sender.send([write], asBatch: false) }

  /// The number of writes that wait or have no answer yet.
  var count: Int { threads.count }

  /// Cancels the writes under way, and drops those that wait.
  func stop() {
    sender.hasStopped.store(true, ordering: .relaxed)
    threads.stop { sender.client.cut() }
  }
}

extension WriteBatcher.Sender {
  /// Sends writes, and finishes each with its result.
  func send(_ waiting: [OutgoingWrite], asBatch isBatch: Bool) {
    let deadline = ContinuousClock.now + times.silence
    let writes = waiting.filter { $0.begin() }
    guard !writes.isEmpty else { return }
    var doubtful: [(write: OutgoingWrite, fault: NodeFault)] = []
    for (write, result) in zip(writes, results(of: writes, silence: times.silence, asBatch: isBatch)) {
      if case .failure(let fault) = result, !fault.isUnsent, !write.write.isAgain, times.asking != nil {
        doubtful.append((write, fault))
      } else {
        write.finish(result)
      }
    }
    if let asking = times.asking, !doubtful.isEmpty { ask(doubtful, before: min(deadline, .now + asking)) }
  }

  /// Asks for the outcome of writes that were sent; the other node carries out those that it has not received before.
  private func ask(_ doubtful: [(write: OutgoingWrite, fault: NodeFault)], before end: ContinuousClock.Instant) {
    var left = doubtful
    while !left.isEmpty, .now < end, !hasStopped.load(ordering: .relaxed) {
      usleep(WriteBatcher.pause)
      let results = results(of: left.map(\.write.again), silence: end - .now, asBatch: left.count > 1)
      var open: [(write: OutgoingWrite, fault: NodeFault)] = []
      for (entry, result) in zip(left, results) {
        // A node that is about to stop, or has just started, does not know the outcome.
        if case .success(let answer) = result, answer.status != 503 {
          entry.write.finish(result)
        } else {
          open.append(entry)
        }
      }
      left = open
    }
    for entry in left { entry.write.finish(.failure(entry.fault)) }
  }

  private func results(
    of writes: [OutgoingWrite], silence: Duration, asBatch isBatch: Bool
  ) -> [Result<NodeAnswer, NodeFault>] {
    guard isBatch, singlesUntil.withLock({ $0.map { $0 <= .now } ?? true }) else {
      return writes.map { single($0, silence) }
    }
    do throws(NodeFault) {
      return try together(writes, silence)?.map { .success($0) } ?? writes.map { single($0, silence) }
    } catch {
      return Array(repeating: .failure(error), count: writes.count)
    }
  }

  private func single(_ write: OutgoingWrite, _ silence: Duration) -> Result<NodeAnswer, NodeFault> {
    Result { () throws(NodeFault) in
      var request = write.request.naming(write.write)
      request.fields += try token.fields(named: .keywayNode)
      let answer = try client.send(request, silence: silence, limit: NodeAnswer.largestBytes)
      // A client may be refused with this status too, and then receives the answer.
      if answer.status == ProblemCode.nodeRefused.status.code, answer.problemCode == .nodeRefused {
        throw Self.refusal(answer)
      }
      return answer
    }
  }

  /// Returns the fault after the other node rejected this node's token, and so has done nothing.
  private static func refusal(_ answer: NodeAnswer) -> NodeFault {
    NodeFault("it does not take writes from this node (\(answer.status)): see nodes.tokenFile", isUnsent: true)
  }

  /// Sends a batch, and returns the answers; nil if the other node does not accept the batch, and so has done nothing.
  private func together(_ writes: [OutgoingWrite], _ silence: Duration) throws(NodeFault) -> [NodeAnswer]? {
    var request = NodeRequest("POST", WriteBatch.target)
    request.fields = [("Content-Type", WriteBatch.mediaType)] + (try token.fields) + (taking?.fields() ?? [])
    request.body = WriteBatch.encoded(writes.map { $0.request.naming($0.write) })
    let limit =
      WriteBatch.mostAnswerBytes + writes.count * WriteBatch.answerHeadBytes + 2 * WriteBatch.mostRecordBytes
    let answer = try client.send(request, silence: silence, limit: limit)
    switch HTTPResponse.Status(code: answer.status) {
    case .ok:
      do throws(WriteBatch.Defect) {
        let (answers, handed) = try WriteBatch.answers(in: answer.body, count: writes.count)
        if let taking, let handed { taking.take(handed) }
        return answers
      } catch {
        throw NodeFault("malformed answer to a batch: \(error)")
      }
    case .unauthorized, .forbidden: throw Self.refusal(answer)
    // A node of an older version.
    case .notFound, .methodNotAllowed:
      singlesUntil.withLock { $0 = .now + WriteBatcher.singlesTime }
      return nil
    // A node with another format, or with other limits.
    case .badRequest, .contentTooLarge, .unsupportedMediaType, .unprocessableContent: return nil
    // The outcome of the writes is lost.
    case let status where status.kind == .successful: throw NodeFault("the answer to a batch has no answers")
    // The node is overloaded or about to stop, and would answer each write with this.
    default: return Array(repeating: answer, count: writes.count)
    }
  }
}

/// A write that is forwarded to another node.
struct OutgoingWrite: Sendable {
  /// The request without the name of the write.
  let request: NodeRequest
  /// The name of the write.
  let write: PassedWrite
  /// Called once, right before the write is sent for the first time. Returns false if it need not be sent, and then its
  /// client has an answer.
  let begin: @Sendable () -> Bool
  /// Called once after `begin`, with the other node's answer. A fault with `isUnsent` means that the other node has
  /// certainly not carried out the write.
  let finish: @Sendable (Result<NodeAnswer, NodeFault>) -> Void

  /// The write, marked as sent before.
  var again: OutgoingWrite {
    var write = write
    write.isAgain = true
    return OutgoingWrite(request: request, write: write, begin: begin, finish: finish)
  }

  /// Returns true if a write can be sent in a batch. The answer to a batch waits for all its writes, so a write is sent
  /// by itself if it is large, if the other node may have to wait for it, if it does not change objects, or if it binds
  /// an object to a stream, which may be another node's.
  static func goesWithOthers(
    _ forwarded: NodeRequest, of request: borrowing Request, _ route: Route, _ store: Store
  ) -> Bool {
    guard route.isCommitted(by: request.method),
      WriteBatch.byteCount(of: forwarded) <= WriteBatch.mostRequestBytes,
      LifetimeReader.streams(namedBy: request, isTransaction: route.isTransaction).isEmpty
    else { return false }
    let cursor = request.header(.keywayCursor).flatMap { Cursor($0) }
    let named = max(cursor?.revision ?? 0, ClusterNode.newestNamed(by: request, store.epoch) ?? 0)
    return named <= store.revision
  }
}

/// The way in which a peer takes over the commits of the writes that it forwarded: the answer to a batch includes the
/// records that the peer lacked when it sent the batch, so that it does not query the database for them.
struct RecordTaking: Sendable {
  /// Returns the header fields that state which position this node has reached.
  let fields: @Sendable () -> [(name: String, value: String)]
  /// Takes over the records that arrived with an answer. They are published when this returns, so that the writes can
  /// be answered.
  let take: @Sendable (HandedRecords) -> Void
}

extension RecordTaking {
  /// Creates an instance for a store over a journal that other nodes append to.
  init(_ journal: any SharedJournal, _ store: Store) {
    self.init {
      let (revision, digest) = journal.newest
      let place = HandedPlace(cursor: store.cursor(revision), digest: digest)
      return [(HTTPField.Name.keywayRecords.rawName, place.field)]
    } take: {
      store.take($0)
    }
  }
}
