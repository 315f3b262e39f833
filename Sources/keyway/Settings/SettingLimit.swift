/// What a limit means to those who meet it.
struct SettingLimit: Sendable {
  /// What a limit is counted for: each of these has it for itself.
  enum Subject: String, Sendable {
    /// All clients together.
    case server
    /// A client: one identity, or one address where no token says who asks.
    case client
    case connection, request, object, transaction, stream, query, token
  }

  /// The name of the setting.
  let name: String
  /// What the limit is counted for.
  let subject: Subject
  /// What happens over it, in the Markdown of Limits.md.
  let consequence: String

  init(_ name: String, of subject: Subject, _ consequence: String) {
    (self.name, self.subject, self.consequence) = (name, subject, consequence)
  }
}
