import Testing

@testable import HTTPServer

@Suite struct ExchangeTests {
  @Test func aRequestIsReadHandledAndAnswered() {
    var exchange = Exchange(bodyLimit: 10)
    #expect(exchange.headerArrived(RequestHeader(contentLength: 4)) == .proceed)
    #expect(exchange.continued(byteCount: 4) == .keep)
    #expect(exchange.continued(byteCount: 0) == .handle)
    exchange.responded()
    #expect(exchange.continued(byteCount: 0) == .close)
  }

  @Test func aDeclaredLengthOverTheLimitIsRefusedBeforeTheBody() {
    var exchange = Exchange(bodyLimit: 10)
    #expect(exchange.headerArrived(RequestHeader(contentLength: 11)) == .refuse(.bodyTooLarge(limit: 10)))
    #expect(exchange.phase == .responded)
  }

  @Test func aFaultOfTheHeaderComesFirst() {
    var exchange = Exchange(bodyLimit: 10)
    #expect(
      exchange.headerArrived(RequestHeader(contentLength: 99, fault: .malformed(.target)))
        == .refuse(.malformed(.target)))
  }

  @Test func aBodyThatGrowsOverTheLimitIsDiscardedAndThenRefused() {
    var exchange = Exchange(bodyLimit: 10)
    #expect(exchange.headerArrived(RequestHeader()) == .proceed)
    #expect(exchange.continued(byteCount: 10) == .keep)
    #expect(exchange.continued(byteCount: 1) == .discard)
    #expect(exchange.continued(byteCount: 9) == .discard)
    #expect(exchange.continued(byteCount: 0) == .refuse(.bodyTooLarge(limit: 10)))
  }

  @Test func discardingHasAnEnd() {
    var exchange = Exchange(bodyLimit: 10)
    #expect(exchange.headerArrived(RequestHeader()) == .proceed)
    #expect(exchange.continued(byteCount: 160) == .discard)
    #expect(exchange.continued(byteCount: 1) == .close)
  }

  @Test func aDeferredAnswerIsSentWhenTheConnectionIsResumed() {
    var exchange = Exchange(bodyLimit: 10)
    _ = exchange.headerArrived(RequestHeader())
    #expect(exchange.continued(byteCount: 0) == .handle)
    exchange.suspended()
    #expect(exchange.continued(byteCount: 0) == .respondDeferred)
    #expect(exchange.continued(byteCount: 0) == .close)
  }

  @Test func aConnectionHandedOverIsOnlyForgotten() {
    var exchange = Exchange(bodyLimit: 10)
    _ = exchange.headerArrived(RequestHeader())
    _ = exchange.continued(byteCount: 0)
    exchange.handedOff()
    #expect(exchange.continued(byteCount: 0) == .close)
    #expect(exchange.phase == .handedOff)
  }
}
