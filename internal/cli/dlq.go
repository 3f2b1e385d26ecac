package cli

import "github.com/spf13/cobra"

func newDLQ(g *globals) *cobra.Command {
	cmd := family("dlq", "Look at dead letters, understand them, move them on",
		`The dead letter office keeps every message that could not succeed, with its
whole story. An ID is that of the letter or of its message, or the message's key
(the id of an item).

--filter chooses letters by terms that all have to hold:
  queue: type: key: stream: status: reason: class: cause: id:   one of the values
  signature:"no such file"  text:"no route"  fingerprint:v2-…   part of a text; a group
  redrivable:yes  needs_review:no  operation:ID
  age:>1h  died:>2026-01-31  first_failed:<now-2h  last_failed:…
  redrives:>0  attempts:5  deliveries:<=9  crashes:0
Letters whose message is on its way again have spent 0 attempts, and 0 crashes.
Without status: only letters are meant that still need something.

--where chooses by an expression over the item, the body of the message: comparisons,
&&, ||, !, in, contains, startsWith, matches and so on of item.FIELD, id, reason,
status, failure_count, error_signature, error_type, error_message, step_failed,
reprocess_eligible, manual_review_required and redrives. What an item does not have is
nil, and less or more than nothing. It chooses up to 10000 letters.`,
		newDLQList(g, nil), newDLQShow(g, nil), newDLQAnalyze(g, nil), newDLQStats(g, nil), newDLQRedrive(g),
		newDLQPurge(g, nil), newDLQWatch(g), newDLQExport(g, nil), newDLQImport(g), newDLQAdopt(g))
	cmd.AddCommand(newLetterVerbs(g)...)
	return cmd
}
