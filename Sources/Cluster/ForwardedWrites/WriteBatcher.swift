import Glibc
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store
import Support
import Synchronization

/// Sends writes to one other node, several in one request where several wait.
///
/// A batch is received whole or not at all, so that a fault says the same of all its writes. Where it is not known
/// whether they were done, they are asked for again, together.
final class WriteBatcher: Sendable {
  /// How long it waits.
  struct Times: Sendable {
    /// For each part of an answer.
    var silence: Duration
    /// For an answer to the question what became of writes; nil where it is not asked.
    var asking: Duration?
  }

  fileprivate final class Sender: Sendable {
    let client: NodeClient
    let times: Times
    let token: NodeToken
    let taking: RecordTaking?
    let hasStopped = Atomic(false)
    /// Until when the other node is not sent batches, which it does not know.
    let singlesUntil = Locked<ContinuousClock.Instant?>(nil)

    init(_ client: NodeClient, _ times: Times, _ token: NodeToken, _ taking: RecordTaking?) {
      (self.client, self.times, self.token, self.taking) = (client, times, token, taking)
    }
  }

  /// Between two questions what became of writes, in microseconds.
  fileprivate static let pause: UInt32 = 100_000
  /// For how long a node that does not know batches is not sent any: it may be replaced by a newer one.
  fileprivate static let singlesTime = Duration.seconds(60)

  private let sender: Sender
  private let threads: BatchThreads<OutgoingWrite>

  /// Creates a batcher to the node of a client, to which `token` shows that a node sends. If answers bring records,
  /// `taking` takes them over, and one write goes as a batch too.
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

  /// Sends a write of a client in its turn. False where too many wait.
  func submit(_ write: OutgoingWrite, of client: ClientAddress) -> Bool {
    threads.submit(write, bytes: WriteBatch.byteCount(of: write.request), of: client)
  }

  /// Sends a write by itself on the calling thread, which waits for the answer.
  func sendAlone(_ write: OutgoingWrite) { sender.send([write], asBatch: false) }

  /// How many writes wait, or have no answer yet.
  var count: Int { threads.count }

  /// Ends what is under way, and lets go of what waits.
  func stop() {
    sender.hasStopped.store(true, ordering: .relaxed)
    threads.stop { sender.client.cut() }
  }
}

extension WriteBatcher.Sender {
  /// Sends writes, and gives each what comes of it.
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

  /// Asks what became of writes that were sent, and has those done that were not.
  private func ask(_ doubtful: [(write: OutgoingWrite, fault: NodeFault)], before end: ContinuousClock.Instant) {
    var left = doubtful
    while !left.isEmpty, .now < end, !hasStopped.load(ordering: .relaxed) {
      usleep(WriteBatcher.pause)
      let results = results(of: left.map(\.write.again), silence: end - .now, asBatch: left.count > 1)
      var open: [(write: OutgoingWrite, fault: NodeFault)] = []
      for (entry, result) in zip(left, results) {
        // A node that is about to stop, or has just begun, does not know.
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
      // Its client may be refused with this status too, and hears of that.
      if answer.status == ProblemCode.nodeRefused.status.code, answer.problemCode == .nodeRefused {
        throw Self.refusal(answer)
      }
      return answer
    }
  }

  /// The other node has not believed that a node sends, and so has done nothing.
  private static func refusal(_ answer: NodeAnswer) -> NodeFault {
    NodeFault("it does not take writes from this node (\(answer.status)): see nodes.tokenFile", isUnsent: true)
  }

  /// The answers to a batch; nil where the other node does not take it, and has done nothing.
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
        throw NodeFault("the answer to a batch: \(error)")
      }
    case .unauthorized, .forbidden: throw Self.refusal(answer)
    // A node of an older version.
    case .notFound, .methodNotAllowed:
      singlesUntil.withLock { $0 = .now + WriteBatcher.singlesTime }
      return nil
    // One with another form, or other limits.
    case .badRequest, .contentTooLarge, .unsupportedMediaType, .unprocessableContent: return nil
    // What became of them is lost.
    case let status where status.kind == .successful: throw NodeFault("the answer to a batch has no answers")
    // It has too much to do, or is about to stop, which it would say to each.
    default: return Array(repeating: answer, count: writes.count)
    }
  }
}

/// A write on its way to another node.
struct OutgoingWrite: Sendable {
  /// What is sent, without its name.
  let request: NodeRequest
  /// Its name.
  let write: PassedWrite
  /// Called once, right before it is sent for the first time; false where it need not be, and its client has an
  /// answer.
  let begin: @Sendable () -> Bool
  /// Called once after `begin`, with what the other node answers. A fault that is unsent says that it has certainly not
  /// done it.
  let finish: @Sendable (Result<NodeAnswer, NodeFault>) -> Void

  /// The same with the word that it was sent before.
  var again: OutgoingWrite {
    var write = write
    write.isAgain = true
    return OutgoingWrite(request: request, write: write, begin: begin, finish: finish)
  }

  /// Whether a write can go with others: the answer to a batch waits for each of its writes, so that one does not that
  /// is large, or that the other node may have to wait for. What changes no objects does not either, and what lasts
  /// with a stream, which may be another node's.
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

/// How a peer that passes writes on takes over what they did: the answer to a batch has the records that the peer
/// lacked when it sent it, so that it asks the database for none of them.
struct RecordTaking: Sendable {
  /// The fields by which a batch says how far this node has come.
  let fields: @Sendable () -> [(name: String, value: String)]
  /// Takes over what came with an answer: it is published when this returns, so that the writes can be answered.
  let take: @Sendable (HandedRecords) -> Void
}

extension RecordTaking {
  /// For a store over a journal that other nodes append to.
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
