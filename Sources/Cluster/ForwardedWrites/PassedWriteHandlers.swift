import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store

/// Carries out writes that another node has forwarded, each exactly once.
///
/// **Why once.** The commit that carries out a write has its id in its record, and is appended only if the journal's
/// last record is the one that its node read last: the same compare-and-append that decides everything else. At each
/// attempt, right before it evaluates the write, a node looks the id up in `PassedWrites` on the writer; by then it has
/// noted the ids of all records up to the one that it will append after. So if two nodes, A and B, carry out one write
/// at the same time, and A's append is first, B's append names a record that is no longer the last, and is refused. B
/// reads what A has appended, notes the id, evaluates the write again, finds the id, and answers with the response in
/// A's record. It makes no difference how long B was suspended in between, or how long its statement took to reach the
/// database: an append that was overtaken has no effect, whenever it arrives.
///
/// A refusal is not fenced by this, because it appends nothing: see `Doubt`.
struct PassedWriteHandlers: Sendable {
  /// The uncertainty whether another node may carry out the write as well, now or later.
  enum Doubt: Sendable {
    case none
    /// The write was sent to a peer, which has not reported the outcome. The peer may carry it out until a commit
    /// prevents that. A refusal by this node is not a commit, so it must not be reported to the client.
    case otherPeer
  }

  let store: Store
  let writes: PassedWrites
  let readings: Readings

  /// The statuses of refusals that depend only on the request, and not on the objects.
  private static let pureRefusals: Set<Int> = [400, 405, 406, 413, 414, 415, 431]

  /// Carries out a write with `handle`, or answers with its outcome if it was carried out already.
  func once(
    _ write: PassedWrite, _ doubt: Doubt, _ wayBack: PeerWrites.WayBack?, _ request: borrowing Request,
    _ context: RequestContext, _ handle: Route.Handler
  ) throws(Problem) -> HandlerResponse {
    guard write.since.epoch == store.epoch else {
      throw Problem(.storeUnavailable, "the node that forwards the write has another epoch; nothing was changed")
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
        .storeUnavailable,
        "this node no longer knows, or does not know yet, whether the write was done (\(write.since))")
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

  /// Notes the outcome of a write, and returns the response to give.
  private func ended(_ write: PassedWrite, _ doubt: Doubt, _ response: Response) -> Response {
    // The node that sent the write may be sending it again on another connection: that is told to try again.
    let isAbandoned = response.status == Response.clientClosedRequest.status
    let response =
      isAbandoned
      ? Problem(.overloaded, "the node that sent the write closed its connection; nothing was changed").response
      : response
    let isDone = response.status.kind == .successful
    let isRefused = response.status.kind == .clientError
    let revision = isDone ? response.fields[.keywayCursor].flatMap { Cursor($0) }?.revision : nil
    let answer = Self.reported(response, doubt)
    writes.end(write.id, doneAt: revision, isRefused: isRefused && write.isAgain, answer)
    return answer
  }

  /// Returns the response to report: a refusal is replaced as long as another node may still do what was refused.
  static func reported(_ response: Response, _ doubt: Doubt) -> Response {
    guard doubt == .otherPeer, response.status.kind == .clientError,
      !pureRefusals.contains(response.status.code)
    else { return response }
    return Problem(
      .storeUnavailable,
      "the node that received the write has not answered, and may still do what this node refuses "
        + "(\(response.status.code)): send it again with its Idempotency-Key, or with If-Match"
    ).response
  }

  /// Returns the response in the record of a commit, if that is a response to this request.
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
      // The record was compacted away.
    } catch {
      return Problem(.storeUnavailable, store.journal.publicReason(error)).response
    }
    return Problem(.storeUnavailable, "the write was done, and its response is no longer kept").response
  }
}

/// The context that other nodes give to a write: its name among them, and its way back.
final class ClusterContext: NodesContext {
  let streams: [String: UInt64]
  let name: BoundWrite?
  private let writes: PassedWrites
  private let wayBack: PeerWrites.WayBack?

  /// Creates the context of a request that this node carries out, under the name that nodes have given it, or nil.
  init(
    _ request: borrowing Request, as name: BoundWrite?, _ writes: PassedWrites, _ wayBack: PeerWrites.WayBack?
  ) {
    streams = (request.outcome as? NamedStreams)?.numbers ?? [:]
    (self.name, self.writes, self.wayBack) = (name, writes, wayBack)
  }

  func precedent() -> Response? { name.flatMap { writes.precedent(of: $0.id) } }

  func handedBack() -> Response? { wayBack?.response }
}
