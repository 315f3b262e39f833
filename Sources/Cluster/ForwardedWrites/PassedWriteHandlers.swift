import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store

/// Carries out, once, what another node has passed on.
///
/// **Why once.** The commit that does a write has its id in its record, and is appended only where the journal's last
/// record is the one that its node has read last: a compare-and-append, the same that decides everything else. A node
/// asks `PassedWrites` on the writer, at each attempt, right before it evaluates the write; by then it has noted the
/// ids of all records up to the one that it will append after. So if two nodes, A and B, carry out one write at the
/// same time, and A's append is first, B's append names a record that is no longer the last, and is refused. B reads
/// what A has appended, notes the id, evaluates the write again, finds the id, and answers what stands in A's record.
/// How long B slept in between, and how long its statement was on its way to the database, makes no difference: an
/// append that was overtaken does nothing, whenever it arrives.
///
/// What this does not fence is a refusal, which appends nothing: see `Doubt`.
struct PassedWriteHandlers: Sendable {
  /// Whether another node may carry the write out as well, now or later.
  enum Doubt: Sendable {
    case none
    /// A peer has been sent it, and has not said what became of it. It may do it as long as no commit is in its way;
    /// a refusal here is none, so it must not be told.
    case otherPeer
  }

  let store: Store
  let writes: PassedWrites
  let readings: Readings

  /// Refusals by what was sent alone, whatever the objects are.
  private static let pureRefusals: Set<Int> = [400, 405, 406, 413, 414, 415, 431]

  /// Has `handle` carry out a write, or answers what became of it.
  func once(
    _ write: PassedWrite, _ doubt: Doubt, _ wayBack: PeerWrites.WayBack?, _ request: borrowing Request,
    _ context: RequestContext, _ handle: Route.Handler
  ) throws(Problem) -> HandlerResponse {
    guard write.since.epoch == store.epoch else {
      throw Problem(.storeUnavailable, "the node that passes the write on has another epoch; nothing was changed")
    }
    let client = request.client
    let bound = BoundWrite(
      id: write.id, binding: BoundWrite.Binding(request, subject: context.requester.identity?.subject))
    switch writes.begin(bound, since: write.since.revision) {
    case .first: break
    case .underWay:
      return .deferred { [writes] completion in
        if let problem = writes.wait(for: write.id, completion) { completion.respond(problem.response) }
      }
    case .done(let revision):
      return .deferred { [self] completion in
        readings.perform(for: client, completion) { completion.respond(response(to: bound, at: revision)) }
      }
    case .otherRequest: throw Problem(.malformedQuery, "Keyway-Request names another write; nothing was changed")
    case .refused: throw Problem(.storeUnavailable, "the write was refused; this is an earlier request for it")
    case .forgotten:
      throw Problem(
        .storeUnavailable, "this node does not know any more, or not yet, whether the write was done (\(write.since))")
    }
    var context = context
    context.nodes = ClusterContext(request, as: bound, writes, wayBack)
    do throws(Problem) {
      return watched(try handle(request, context), write, doubt)
    } catch {
      let response = ended(write, doubt, error.response)
      return .response(response)
    }
  }

  private func watched(_ response: HandlerResponse, _ write: PassedWrite, _ doubt: Doubt) -> HandlerResponse {
    switch response {
    case .response(let now): return .response(ended(write, doubt, now))
    case .deferred(let start):
      return .deferred { [self] completion in
        start(completion.preparing { [self] response in ended(write, doubt, response) })
      }
    case .stream:
      assertionFailure("a write answers with a response")
      _ = ended(write, doubt, Problem(.internalError, "the write was not carried out").response)
      return response
    }
  }

  /// Notes what became of a write; gives what is answered.
  private func ended(_ write: PassedWrite, _ doubt: Doubt, _ response: Response) -> Response {
    let isDone = response.status.kind == .successful
    let isRefused = response.status.kind == .clientError
    let revision = isDone ? response.fields[.keywayCursor].flatMap { Cursor($0) }?.revision : nil
    let answer = Self.told(response, doubt)
    writes.end(write.id, doneAt: revision, isRefused: isRefused && write.isAgain, answer)
    return answer
  }

  /// What is told of a response: a refusal is not while another node may still do what was refused.
  static func told(_ response: Response, _ doubt: Doubt) -> Response {
    guard doubt == .otherPeer, response.status.kind == .clientError,
      !pureRefusals.contains(response.status.code)
    else { return response }
    return Problem(
      .storeUnavailable,
      "the node that was sent the write has not answered, and may still do what is refused here "
        + "(\(response.status.code)): send it again with its Idempotency-Key, or with If-Match"
    ).response
  }

  /// Returns the response that stands in the record of a commit, if it is one to this request.
  private func response(to write: BoundWrite, at revision: Revision) -> Response {
    do throws(JournalError) {
      let record = try store.journal.records(after: revision - 1, limit: 1, bytes: 1, waiting: .zero).first
      if let record, record.revision == revision,
        let attachment = record.attachment.flatMap({ PassedAttachment($0) }), attachment.id == write.id,
        attachment.binding == write.binding
      {
        return attachment.stored.response
      }
    } catch .compacted {
      // It is too old to be told.
    } catch {
      return Problem(.storeUnavailable, store.journal.publicReason(error)).response
    }
    return Problem(.storeUnavailable, "the write was done, and its response is no longer kept").response
  }
}

/// The part of other nodes in a write: its name among them, and its way back.
final class ClusterContext: NodesContext {
  let streams: [String: UInt64]
  let name: BoundWrite?
  private let writes: PassedWrites
  private let wayBack: PeerWrites.WayBack?

  /// Creates the context of a request that this node carries out, under the name that nodes have given it, if any.
  init(
    _ request: borrowing Request, as name: BoundWrite?, _ writes: PassedWrites, _ wayBack: PeerWrites.WayBack?
  ) {
    streams = (request.outcome as? NamedStreams)?.numbers ?? [:]
    (self.name, self.writes, self.wayBack) = (name, writes, wayBack)
  }

  func precedent() -> Response? { name.flatMap { writes.precedent(of: $0.id) } }

  func givenBack() -> Response? { wayBack?.response }
}
