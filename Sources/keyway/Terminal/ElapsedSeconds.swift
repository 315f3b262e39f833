extension ContinuousClock.Instant {
  /// The seconds that have passed since.
  var elapsedSeconds: Double { duration(to: .now) / .seconds(1) }
}
