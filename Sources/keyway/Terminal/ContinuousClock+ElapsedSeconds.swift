extension ContinuousClock.Instant {
  var elapsedSeconds: Double { duration(to: .now) / .seconds(1) }
}
