package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Settings of giving up that make no sense are refused before anything is touched: by the field,
// its limit and what to do.
func TestGivingUpIsChecked(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := "sqlite://" + filepath.Join(t.TempDir(), "none.db")
	const noBreaker = "--halt-after is 1m0s, and there is no breaker that can open: give --breaker default, or leave it out"
	const endless = "--halt-after is 1m0s, and this does not end by itself: give "
	for _, c := range [][2]string{
		{"run LIST --grace -1s", "--grace is -1s: give a time from 0 on; 0 ends commands at once"},
		{"run LIST --min-age 8d --max-age 7d", "min_age is 192h, more than max_age 168h, after which no message is retried: lower it"},
		{"run LIST --halt-after -1s", "--halt-after is -1s: give a positive duration, or 0 for never"},
		{"work q --until-empty --halt-after -1s", "--halt-after is -1s: give a positive duration, or 0 for never"},
		{"run LIST --halt-after soon", `--halt-after is "soon", no duration: write a number`},
		{"run LIST --halt-after 1m --breaker none", noBreaker},
		{"run LIST --halt-after 1m --profile wink", noBreaker},
		{"map run LIST --halt-after 1m --breaker none", noBreaker},
		{"work q --halt-after 1m", endless + "--until-empty too, or leave it out"},
		{"work q --drain --halt-after 1m", endless + "--until-empty too, or leave it out"},
		{"consume kafka://localhost/t -g g --halt-after 1m", endless + "--idle too, or leave it out"},
		{"run LIST --breaker 0", `breaker "0" opens after 0 failures: give none, default, or failures,successes,`},
		{"run LIST --breaker 0,3,30s,3", `breaker "0,3,30s,3" opens after 0 failures: give none, default, or failures,`},
		{"run LIST --breaker 5,0", "breaker successes is 0: give a number from 1 to "},
		{"run LIST --breaker 5,3,0s", "breaker open_for is 0s: give a duration from "},
		{"run LIST --breaker 5,3,30s,0", "breaker half_open_max is 0: give a number from 1 to "},
		{"run LIST --breaker -1", `breaker "-1" opens after -1 failures: give none, default, or failures,`},
		{"run LIST --stop-after 0", `--stop-after is "0": give a share such as 10%, or how many, such as 25, or none`},
		{"map run LIST --stop-after -10%", `--stop-after is "-10%": give a share such as 10%, or how many, such as 25, or none`},
	} {
		line, want := c[0], c[1]
		args := append(strings.Fields(strings.ReplaceAll(line, "LIST", list)), "--store", store, "--", "true")
		if code, out, errs := policyCommand(t, args...); code != ExitUsage || out != "" || !strings.HasPrefix(errs, "nixie: "+want) {
			t.Errorf("%s: exit %d, %s%s", line, code, out, errs)
		}
	}
	if _, err := os.Stat(strings.TrimPrefix(store, "sqlite://")); err == nil {
		t.Error("a store was made")
	}
}
