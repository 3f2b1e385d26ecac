package cli

// promises are the commands, flags and JSON fields that others rely on, as they
// were agreed. They are written by hand, so that a command that vanishes, or was
// never made, is noticed.
func promises() []string {
	return []string{
		"run: --parallel --max-attempts --backoff --timeout --id-field --job --profile --on-item-failure --skip-bad --store --output " +
			"--json-path --permanent-exit job items succeeded dead discarded unfinished attempts groups[].signature " +
			"groups[].fingerprint groups[].count groups[].reason",
		"dlq list: --filter --limit --cursor --all id message_id key queue type status cause reason class signature fingerprint " +
			"redrivable needs_review rule attempts deliveries crashes generation redrives first_failed_at last_failed_at died_at",
		"dlq show: message.body message.body_base64 headers artifacts history[].generation history[].attempt history[].started_at " +
			"history[].failed_at history[].duration_ms history[].class history[].reason history[].type history[].message " +
			"history[].context history[].stack history[].worker history[].node history[].step history[].exit_code " +
			"history[].log_location history[].steps history[].decision history[].next_at history_dropped",
		"dlq analyze: --filter",
		"dlq stats: --filter open review quarantined redriving resolved discarded redrivable needs_review oldest_died_at oldest_age_s " +
			"dead_per_hour retried_per_hour by_reason by_queue",
		"dlq redrive: --filter --max --rate --reason --force --resume --dry-run --yes --all operation selected redriven skipped failed",
		"dlq discard: --filter --max --rate --reason --resume --dry-run --yes --all",
		"dlq export: --filter --format --out",
		"dlq hold:", "dlq unhold:", "dlq requalify:", "dlq restore:", "dlq note:", "dlq purge: --older-than --by", "dlq import:",
		"dlq watch: --exec",
		"mailbox send: --body --reply-to --request-id id", "mailbox reply: --body --request-id id request_id reply_to",
		"mailbox receive: --max --wait --keep id request_id reply_to deliveries sent_at headers body",
		"mailbox stats: visible leased delayed sent", "mailbox purge: --max --dry-run --yes purged",
		"queue list:", "queue stats:", "queue pause:", "queue resume:", "queue purge:", "queue drain:", "queue set:",
		"message list: --filter --limit --cursor --all", "message show:", "message log: --filter --limit --cursor --all",
		"message cancel:", "message hold: --reason --release-followers", "message retry-now:", "message reset-attempts:",
		"message reschedule:", "message move:",
		"stream list:", "stream show:", "stream release:", "stream unblock:",
		"stats retries:", "stats reasons:", "stats backlog:", "stats poison:", "stats stalled:",
		"check: --max-depth --max-age --max-rate",
		"audit list:", "audit verify:", "audit export:",
		"verify: checked violations", "doctor:", "policy show:", "policy simulate:", "policy profiles:", "completion:", "version:",
		"migrate up: --to --grant --grant-enqueue applied", "migrate down: --to --lose-data",
		"migrate status: version name applied applied_at",
		"migrate print: --down --grant --grant-enqueue sql", "migrate validate: rule subject",
		"work: --parallel --max-attempts --backoff --timeout --profile --on-item-failure --permanent-exit --drain --until-empty",
		"enqueue: --jsonl --type --key --stream --dedupe-key --on-conflict --priority --delay --at --expires-in --header --body id " +
			"duplicate different",
	}
}
