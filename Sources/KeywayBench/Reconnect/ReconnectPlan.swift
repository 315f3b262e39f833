/// What a benchmark of a crowd that comes back does.
struct ReconnectPlan: Hashable, Sendable {
  /// Where the server is.
  var address: SocketAddress
  /// How many subscribers there are.
  var subscribers: Int
  /// How many objects there are; each has as many subscribers as the others.
  var objects: Int
  /// How many revisions the subscribers miss.
  var behind: Int
  /// How many of them are of the object that a subscriber observes.
  var missed: Int
  /// How many connections are under way at once.
  var atOnce: Int
  /// How many writes there are in a second, before the cut and while they come back.
  var writesPerSecond: Int
  /// How many connections write.
  var writers: Int
  /// How long each message is.
  var sizeBytes: Int
  /// How long the writers are measured before the cut.
  var baselineSeconds: Int
  /// How long it may take until everybody has caught up.
  var catchUpSeconds = 60
  /// How long an answer may take.
  var answerSeconds = 30

  /// In so many groups of objects the missed revisions are written, one group with each.
  var groups: Int { max(1, behind / missed) }

  /// The name of an object.
  func object(_ number: Int) -> String { "Note/reconnect-\(number)" }

  /// The key path that is observed and written.
  func path(_ object: Int) -> String { "/v1/objects/\(self.object(object))/text" }

  /// The object that a subscriber observes.
  func object(of subscriber: Int) -> Int { subscriber % objects }

  /// The subscribers as they come.
  var seats: [Audience.Seat] {
    (0..<subscribers).map { subscriber in
      Audience.Seat(request: address.subscription(path(object(of: subscriber))), keepsID: true)
    }
  }
}
