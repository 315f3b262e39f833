import KeyValueModel

extension RequestContext {
  /// What the rules let the requester read; nil where they are asked no rule.
  var viewer: Viewer? { requester.viewer }
}
