// Package hostile has items that attack what they are handed to.
package hostile

import (
	"slices"
	"strings"
)

// Values returns texts that do harm when they are read as code, option, path or template. A text
// that runs makes a file at the path canary.
func Values(canary string) []string {
	values := []string{
		"", " ", "\t", "\n", "\r\n", "a\nb\n", "\x01\x1b[2J\x07", "\xff\xfe", "\u202e\u200b\ufeff", "é e\u0301",
		"-", "--", "-rf", "--help", "--upload-pack=touch CANARY", "--output=CANARY", "--exec=touch CANARY", "-c",
		"-oProxyCommand=touch CANARY", "-ccore.pager=touch CANARY",
		"{}", "{id}", "{{id}}", "{{}}", "{id} {name}", "${id}", "%s%n%d", "$1", "$@", "$*", "$$", "$?", "%PATH%", "{{.Name}}", "{a.b[0]}",
		"A=B", "PATH=", "PATH=:/bin", "LD_PRELOAD=CANARY", "GIT_SSH_COMMAND=touch CANARY", "IFS=x", "ENV=CANARY", "NIXIE_VERDICT=CANARY",
		"ext::sh -c touch% CANARY", "file:///etc/passwd", "ssh://-oProxyCommand=touch CANARY/x", "git@host:..",
		"https://user:pw@host/?a=b&c=d#e",
		"..", "../..", "/etc/passwd", "a/../../b", "C:\\x", "\\\\host\\share", "nul", ".git", "index.lock", "refs/heads/a..b", "@{-1}",
		"HEAD~1^", strings.Repeat("b", 300),
		"*", "?", "[a-z]*", "~", "~root", "{a,b}", "!!", "#", "\\", "\\n", "'", "\"", "`", "'\"", "\"'\"'\"", "''", "a'b\"c`d",
		"@/etc/passwd", "Signed-off-by: a <b@c>\n\nx: y", "0", "-1", "1e400", "null", "true", `{"id":1}`, strings.Repeat("x", 100<<10),
	}
	for _, code := range []string{"touch CANARY", ": > CANARY", "exec touch CANARY"} {
		for _, form := range []string{"$(%)", "`%`", ";%", "; % ;", "&&%", "&%", "||%", "|%", "\n%\n", "\r%", "';%;'", "\";%;\"", "\\';%;",
			"$(($(%)))", "<(%)",
			">CANARY", ">>CANARY;%", "'$(%)'", "\"$(%)\"", "\"`%`\"", "x[$(%)]", "${x:-$(%)}", "${x:=`%`}", "a='$(%)' b", "() { :; }; %",
			"{%}", "{{%}}", "-e %", "--eval=%",
			"eval %", "#\n%", "\\\n%", "%#", "*;%", "$IFS$(%)", "0;%", "@(%)", "!(%)", "=%", "+%", "@%", "%\x1b", "$'\\n'%", "%&",
			"2>&1;%", "<<x\n%\nx"} {
			values = append(values, strings.ReplaceAll(form, "%", code))
		}
	}
	for i := range values {
		values[i] = strings.ReplaceAll(values[i], "CANARY", canary)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
