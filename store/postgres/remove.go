package postgres

// remove removes messages that have ended, with all that belongs to them, and counts them.
func (t *tx) remove(why string, positions []int64) {
	t.freeKeys(positions)
	t.run("tally_removed.sql", positions, why)
	t.run("tally_discards.sql", positions)
	t.run("uncount.sql", positions)
	t.run("note_purged.sql", positions, t.now)
	t.run("delete from @.note where letter = any($1)", positions)
	for _, table := range [...]string{"letter", "original", "attachment", "failure", "log", "message"} {
		t.run("delete from @."+table+" where pos = any($1)", positions)
	}
}
