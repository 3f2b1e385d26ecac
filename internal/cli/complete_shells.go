package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// askOfBash is the word by which the script of bash asks. Bash splits a line at colons and does not
// unquote it, so nixie reads the line itself.
const askOfBash = "__bash"

const bashScript = `# bash completion for %[1]s: source <(%[1]s completion bash)
_nixie() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:files) compopt -o default 2>/dev/null ;;
		:nospace) compopt -o nospace 2>/dev/null ;;
		*) COMPREPLY+=("$line") ;;
		esac
	done < <("$1" ` + askOfBash + ` "$COMP_LINE" "$COMP_POINT" 2>/dev/null)
}
complete -F _nixie %[1]s
`

const zshScript = `#compdef %[1]s
# zsh completion for %[1]s: a file _%[1]s in a folder of $fpath, or source <(%[1]s completion zsh)
_nixie() {
	local line directive=4
	local -a values shown options
	for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
		if [[ $line == :<-> ]]; then
			directive=${line#:}
		elif [[ -n $line ]]; then
			values+=("${line%%%%$'\t'*}")
			shown+=("${line/$'\t'/  -- }")
		fi
	done
	(( directive & 1 )) && return 1
	[[ $PREFIX == -*=* ]] && compset -P 1 '*='
	if (( ! $#values )); then
		(( directive & 4 )) || _files
		return
	fi
	(( directive & 2 )) && options=(-S '')
	compadd -l "${options[@]}" -d shown -- "${values[@]}"
}
if [[ ${funcstack[1]} == _nixie || ${funcstack[1]} == _%[1]s ]]; then _nixie "$@"; else compdef _nixie %[1]s; fi
`

const fishScript = `# fish completion for %[1]s: %[1]s completion fish | source
function __nixie_complete
	set -l words (commandline -opc)
	set -l current (string replace -r '^["\']' '' -- (commandline -ct))
	set -l flag (string match -r -- '^-[^=]*=' "$current")
	set -l files 1
	for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
		if string match -qr '^:\d+$' -- $line
			test (math "bitand("(string sub -s 2 -- $line)", 4)") -ne 0; and set files 0
		else if test -n "$line"
			set files 0
			printf '%%s%%s\n' "$flag" "$line"
		end
	end
	test $files -eq 1; and __fish_complete_path "$current"
end
complete -c %[1]s -f -a '(__nixie_complete)'
`

// ownScripts makes the commands below completion print ours: those of the command library end at a
// quote, where a filter begins.
func ownScripts(root *cobra.Command) {
	for shell, script := range map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript} {
		cmd, _, err := root.Find([]string{"completion", shell})
		if err != nil {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			if plain, err := cmd.Flags().GetBool("no-descriptions"); plain && err == nil {
				script = strings.ReplaceAll(script, cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), script, root.Name())
			return err
		}
	}
}

// completeLine answers bash: what completes a line up to a point, as bash puts it in the line.
func completeLine(s Streams, args []string) int {
	line, point := args[1], len(args[1])
	if n, err := strconv.Atoi(args[2]); err == nil && n >= 0 && n < point {
		point = n
	}
	l := splitLine(line[:point])
	if len(l.words) == 0 {
		return ExitOK
	}
	var out bytes.Buffer
	answers, directive := l.ask(s, &out)
	if directive&cobra.ShellCompDirectiveNoSpace != 0 {
		fmt.Fprintln(s.Out, ":nospace")
	}
	if len(answers) == 0 && directive&(cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveError) == 0 {
		fmt.Fprintln(s.Out, ":files")
	}
	for _, answer := range answers {
		fmt.Fprintln(s.Out, answer)
	}
	return ExitOK
}

// ask returns the answers of the command library, as they stand in the line.
func (l *shellLine) ask(s Streams, out *bytes.Buffer) (answers []string, directive cobra.ShellCompDirective) {
	s.Out, s.Err = out, io.Discard
	Main(append(append([]string{cobra.ShellCompNoDescRequestCmd}, l.words[1:]...), l.current), s)
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if n, is := strings.CutPrefix(line, ":"); is {
			number, _ := strconv.Atoi(n)
			directive = cobra.ShellCompDirective(number)
			continue
		}
		answers = append(answers, l.inLine(line))
	}
	return answers, directive
}

// shellLine holds the words of a line up to the cursor.
type shellLine struct {
	words   []string // before the current one
	current string   // what is to be completed, without quotes
	quote   rune     // the open quote that it is in
	raw     string   // as it was typed, behind the open quote
}

// splitLine reads the words of a line as a shell does, without expanding anything.
func splitLine(line string) (l shellLine) {
	var word, raw strings.Builder
	begun := false
	end := func() {
		if begun {
			l.words = append(l.words, word.String())
		}
		word.Reset()
		raw.Reset()
		begun = false
	}
	escaped := false
	for _, c := range line {
		raw.WriteRune(c)
		switch {
		case escaped:
			escaped = false
			word.WriteRune(c)
		case c == '\\' && l.quote != '\'':
			escaped, begun = true, true
		case l.quote != 0 && c == l.quote:
			l.quote = 0
		case l.quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			l.quote, begun = c, true
			raw.Reset()
		case c == ' ' || c == '\t' || c == '\n':
			end()
		case strings.ContainsRune(";|&", c):
			end()
			l.words = nil
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	l.current, l.raw = word.String(), raw.String()
	return l
}

// inLine writes an answer as bash puts it behind the last of the characters that end a word for it.
func (l *shellLine) inLine(answer string) string {
	typed := l.current
	if flag, value, has := strings.Cut(typed, "="); has && strings.HasPrefix(flag, "-") {
		typed = value // the command library answers with values alone
	}
	if l.quote != 0 {
		rest := strings.TrimPrefix(answer, typed)
		return l.raw + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\x60", "\\\x60").Replace(rest)
	}
	kept := answer[strings.LastIndexAny(typed, ":=")+1:]
	var b strings.Builder
	for _, c := range kept {
		if strings.ContainsRune(" \t\"'\\$\x60<>|&;()*?[]!#{}", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
