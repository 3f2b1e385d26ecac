package cli

import "testing"

func TestIDsThatEndAlikeHaveMoreDigits(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"01890a5d-ac96-774b-bcce-b302099abcde", "01890a5d-ac97-774b-bcce-b302099abcdf", "099abcde"},
		{"01890a5d-ac96-774b-bcce-b302099abcde", "01890a5d-ac97-774b-bcce-b312099abcde", "02099abcde"},
		{"01890a5d-ac96-774b-bcce-b302099abcde", "01890a5d-ac96-774b-bcce-b302099abcde", "099abcde"},
	} {
		rows := [][]cell{{{text: c.a}}, {{text: c.b}}}
		shorten(rows, 0)
		if got := rows[0][0].text; got != c.want {
			t.Errorf("%s next to %s is %s, want %s", c.a, c.b, got, c.want)
		}
	}
}
