/// What the program does with requests.
package protocol RequestHandler: Sendable {
  /// Answers a request. Called once for every request that arrived whole, on one of the server's threads and on several
  /// of them at once; while it works, the other connections of that thread wait.
  func handle(_ request: borrowing Request) -> HandlerResponse

  /// The response to a request that never becomes one for `handle`, or that comes away from there without its answer.
  /// On any thread; the same patience.
  func response(to fault: RequestFault) -> Response

  /// Puts into a response what only its request can say: called once for each that is sent, `handle`'s and those to
  /// faults, right before; on any thread; the same patience. The header has the id already. `origin` gives the page
  /// that sends the request (`Origin`, Fetch standard), as far as the request was read; each call looks for it anew.
  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?)
}
