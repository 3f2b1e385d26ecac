// Package telemetry makes observers that tell what happens in numbers, traces and logs:
//
//	[Prometheus]     metrics with the prefix nixie_, to be scraped
//	[OpenTelemetry]  spans, and metrics of messaging and of dead letters
//	[Logs]           a record for each death and for each letter that is handled
//
// Labels are bounded: queue, state, verb, class, reason and cause, never an ID, a key or a text.
// Observers do not block. See docs/telemetry.md for each metric and what to do when it moves.
package telemetry
