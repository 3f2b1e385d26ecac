package postgres_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// TestSQLEnqueueInOtherLanguages runs the programs of docs/postgres.md with the clients of the
// distribution, psycopg and node-pg, and the SQL.
func TestSQLEnqueueInOtherLanguages(t *testing.T) {
	list, schema := crowd(t, 1)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "postgres.md"))
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Enqueue by SQL\n")
	section, _, _ = strings.Cut(section, "\n## ")
	run(t, server.URL, "drop table if exists invoice; create table invoice (number int)")
	defer run(t, server.URL, "drop table invoice")
	programs := map[string][]string{"python": {"/usr/bin/python3", "-"}, "js": {"node", "-"}}
	ran := map[string]int{}
	for _, block := range regexp.MustCompile("(?ms)^```(sql|python|js)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		language, text := block[1], strings.ReplaceAll(block[2], "nixie.enqueue", schema+".enqueue")
		ran[language]++
		if language == "sql" {
			run(t, server.URL, text)
			continue
		}
		command := exec.CommandContext(t.Context(), programs[language][0], programs[language][1:]...)
		command.Stdin = strings.NewReader(text)
		command.Env = append(os.Environ(), "DATABASE_URL="+server.URL, "NODE_PATH=/usr/share/nodejs")
		if out, err := command.CombinedOutput(); err != nil {
			missing := regexp.MustCompile("No module named 'psycopg'|Cannot find module 'pg'|executable file not found|no such file")
			if missing.MatchString(string(out)+err.Error()) && os.Getenv("NIXIE_TEST_REQUIRE") == "" {
				t.Skipf("no client for %s: make test-servers installs it", language)
			}
			t.Fatalf("%s: %v\n%s", language, err, out)
		}
	}
	if want := map[string]int{"sql": 2, "python": 1, "js": 1}; !maps.Equal(ran, want) {
		t.Errorf("the page has blocks %v, want %v", ran, want)
	}
	var came []string
	for _, queue := range []string{"mail", "invoices"} {
		ds, err := list[0].Claim(t.Context(), queue, nixie.Want{Max: 9})
		must(t, err)
		for _, d := range ds {
			came = append(came, strings.Join([]string{queue, d.Type, d.Key, string(d.Body), d.Header("request-id")}, "|"))
		}
	}
	slices.Sort(came)
	if want := []string{
		`invoices|resend|invoice-7|{"number" : 7}|`, `invoices|resend|invoice-8|{"number" : 8}|`,
		`invoices||invoice-7|{"number": 7}|r7`, `invoices||invoice-8|{"number":8}|r8`, `mail|||hello|`,
	}; !slices.Equal(came, want) {
		t.Errorf("messages came:\n%s", strings.Join(came, "\n"))
	}
	sound(t, list[0])
}
