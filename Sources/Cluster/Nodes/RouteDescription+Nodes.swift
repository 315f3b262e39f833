import HTTPTypes
import KeywayServer

/// What other nodes ask of this one.
extension RouteDescription {
  private static let octets = "application/octet-stream"

  static let node = reading(
    .nodes, "getNode", "What this node has, and how far it has come",
    .json(
      .object([
        "epoch": .text, "schema": .text, "node": .text, "access": .bool, "revision": .whole(from: 0),
        "nodes": .list(of: .text),
      ]),
      "The node, and all that it knows."))
  static let nodeSnapshot = reading(
    .nodes, "getNodeSnapshot", "A state to begin with, as a file", .text(octets, "The file of a snapshot."),
    .nothing("That state is the empty store."), problems: [.overloaded, .storeUnavailable])
  static let nodeRecords = RouteDescription(
    .nodes,
    [
      .get: OperationDescription(
        name: "getNodeRecords", summary: "The records after a revision, once there are some",
        parameters: [.nodeEpoch, .nodeRevision, .nodeDigest, .nodeName],
        answers: [.text(octets, "The records, with the digest of each.")],
        problems: Set<ProblemCode>.reading.and([.otherHistory, .unusableCursor, .behind, .storeUnavailable]))
    ])
  static let nodeRevocations = reading(
    .nodes, "getNodeRevocations", "Whose tokens are refused, exactly",
    .json(
      .object(["revocations": .list(of: .object(["sub": .text, "before": .whole(from: 0)]))]), "The revocations."),
    problems: .reading)
  static let nodeStreams = RouteDescription(
    .nodes,
    [
      .post: OperationDescription(
        name: "endNodeStreams", summary: "Streams of the node that asks are gone, by their numbers",
        body: .json(.object(["ended": .list(of: .whole(from: 1))])),
        answers: [.json(.object(["ended": .whole(from: 0)]), "How many of them objects lasted with.")],
        problems: [.malformedJSON, .unsupportedMediaType, .invalidValue, .leaderUnreachable, .overloaded])
    ])
  static let nodeWrites = RouteDescription(
    .nodes,
    [
      .post: OperationDescription(
        name: "passNodeWrites", summary: "Writes that another node passes on, several at once",
        body: BodyDescription(types: [(WriteBatch.mediaType, .any)]),
        answers: [.text(WriteBatch.mediaType, "The answer to each, in their order.")])
    ])
  static let nodeStream = reading(
    .nodes, "getNodeStream", "The number of a stream that is there",
    .json(.object(["number": .whole(from: 1)]), "Its number."), problems: [.unknownStream])
}

extension ParameterDescription {
  fileprivate static let nodeEpoch = ParameterDescription("epoch", "The epoch of the node that asks.")
  fileprivate static let nodeRevision = ParameterDescription(
    "after", .whole(from: 0), "The revision that the node that asks has come to.")
  fileprivate static let nodeDigest = ParameterDescription(
    "digest", .text(matching: "^[0-9a-fA-F]{1,16}$"), "The digest of its journal there.")
  fileprivate static let nodeName = ParameterDescription("node", "Where the node that asks is reached.")
}
