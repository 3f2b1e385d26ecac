package command

import (
	"errors"
	"strings"
	"testing"
)

// Where a value stands in a script decides how its variable is quoted.
func TestScripts(t *testing.T) {
	t.Parallel()
	named := func(name string) bool { return name == "count" }
	for script, want := range map[string]string{
		`echo ${item.name}`:                                   `echo "${NIXIE_VALUE_1}"`,
		`echo "a ${item.name} b"`:                             `echo "a ${NIXIE_VALUE_1} b"`,
		`echo 'a ${item.name} b'`:                             `echo 'a '"${NIXIE_VALUE_1}"' b'`,
		`echo pre${item.a}${item.a}${item.b[0].c}post`:        `echo pre"${NIXIE_VALUE_1}""${NIXIE_VALUE_1}""${NIXIE_VALUE_2}"post`,
		"cat <<END\n${item}\n'${item}'\nEND\n":                "cat <<END\n${NIXIE_VALUE_1}\n'${NIXIE_VALUE_1}'\nEND\n",
		"cat <<-E\n\t$(echo ${item.a})\n\tE\n":                "cat <<-E\n\t$(echo \"${NIXIE_VALUE_1}\")\n\tE\n",
		`echo "$(echo ${item.a} "${item.a}")"`:                `echo "$(echo "${NIXIE_VALUE_1}" "${NIXIE_VALUE_1}")"`,
		`X=${item.a} env; for f in ${count}; do :; done`:      `X="${NIXIE_VALUE_1}" env; for f in "${NIXIE_VALUE_2}"; do :; done`,
		`echo ${HOME} ${X:-1} ${f%.go} ${f-a.b} $HOME`:        `echo ${HOME} ${X:-1} ${f%.go} ${f-a.b} $HOME`,
		"# ${item.a}\necho ${item.a}":                         "# ${NIXIE_VALUE_1}\necho \"${NIXIE_VALUE_1}\"",
		`sed -i 's/a/b/' ${item.a} "${item.b}"`:               `sed -i 's/a/b/' "${NIXIE_VALUE_1}" "${NIXIE_VALUE_2}"`,
		`awk -v x=${item.a} '{print x}' ${item.b}`:            `awk -v x="${NIXIE_VALUE_1}" '{print x}' "${NIXIE_VALUE_2}"`,
		`jq --arg a "x${item.a}" .b`:                          `jq --arg a "x${NIXIE_VALUE_1}" .b`,
		`[[ a == b ]] && echo $((1+1))`:                       `[[ a == b ]] && echo $((1+1))`,
		`[ ${item.a} = b ] || sh -c 'echo "$1"' sh ${item.a}`: `[ "${NIXIE_VALUE_1}" = b ] || sh -c 'echo "$1"' sh "${NIXIE_VALUE_1}"`,
		`case ${item.a} in ${item.b}) ;; esac >${item.a}`:     `case "${NIXIE_VALUE_1}" in "${NIXIE_VALUE_2}") ;; esac >"${NIXIE_VALUE_1}"`,
	} {
		got, _, err := ScriptOf(script, named)
		if err != nil || got.args[2].pieces[0].text != want {
			t.Errorf("%s\nbecame %v %v\nwant   %s", script, got, err, want)
		}
	}
	for script, says := range map[string]string{
		`echo $((${item.a} + 1))`:          "arithmetic",
		"echo `echo ${item.a}`":            "backticks",
		"cat <<'END'\n${item.a}\nEND\n":    "not sure",
		`echo "${X:-${item.a}}"`:           "another ${…}",
		`${item.a} b`:                      "the program",
		`"x${item.a}" b`:                   "the program",
		`eval "echo ${item.a}"`:            "code for eval",
		`sh -c 'echo ${item.a}'`:           "code for sh",
		`/bin/bash -ec "echo ${item.a}"`:   "code for bash",
		`trap "echo ${item.a}" EXIT`:       "code for trap",
		`echo \${item.a}`:                  "not sure",
		`echo "\${item.a}"`:                "not sure",
		`echo ${item.a`:                    "",
		`echo "${item.a}`:                  "cannot be read",
		"echo ${item.a}; diff <(a) <(b)":   "cannot be read",
		"a=1; b=$[ ${item.a} ]":            "compute",
		`(( x = ${item.a} ))`:              "compute",
		`[[ ${item.a} -gt 1 ]]`:            "code for [[",
		`python3 -c "print(${item.a})"`:    "code for python3",
		`awk '/${item.a}/ {print}' file`:   "code for awk",
		`awk ${item.a} file`:               "code for awk",
		`sed -i "s/x/${item.a}/" file`:     "code for sed",
		`sed -n -e ${item.a} file`:         "code for sed",
		`jq ".x == \"${item.a}\"" file`:    "code for jq",
		`timeout 5 sh -c "echo ${item.a}"`: "code for sh",
		`ssh host rm ${item.a}`:            "code for ssh",
	} {
		got, _, err := ScriptOf(script, named)
		var at *PlaceError
		switch {
		case err == nil && says == "":
		case err == nil || !strings.Contains(err.Error(), says) || says == "":
			t.Errorf("%s: %v %v, want %s", script, got, err, says)
		case !errors.As(err, &at) || at.At < 0 || at.At > len(script):
			t.Errorf("%s: no position in %v", script, err)
		}
	}
}
