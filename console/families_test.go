package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
)

// hosts are letters of ten groups that differ in a host, and of another group.
func hosts() []nixie.Letter {
	var list []nixie.Letter
	for i, host := range []string{"ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ivy", "joe"} {
		cause := "no route to host " + host + " from here"
		list = append(list, letter(i+1, "orders", "dependency: "+cause, cause, time.Duration(i+1)*time.Minute))
	}
	return append(list, letter(20, "orders", "dependency: it is away", "it is away", time.Minute))
}

// Causes that differ in a word are one line on the first page and on that of causes, which opens.
// What is done to a family is previewed with the words that differ.
func TestFamilies(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, hosts()...)
	says := func(path string, texts ...string) string {
		t.Helper()
		body := s.page(http.StatusOK, path)
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q:\n%s", path, text, body)
			}
		}
		return body
	}
	says("/", "new</strong> <span><bdi>10 letters of 10 causes: dependency: no route to host * from here (host: 10 values)",
		"1 letter: dependency: it is away")
	body := says("/groups", "11 causes of", "dependency: no route to host * from here",
		"<strong>host</strong>: 10 values: <bdi>ada</bdi>, <bdi>bob</bdi>, <bdi>cyd</bdi>, <bdi>dan</bdi>, <bdi>eve</bdi>, …", "2 of 2")
	if strings.Contains(body, "host ada from") {
		t.Errorf("a member of a family has a line:\n%s", body)
	}
	id := between(t, body, "family=", `"`)
	says("/groups?family="+id, "10 causes", "no route to host ada from here", "no route to host joe from here", "10 of 10")
	says("/redrive?filter=family:"+id, "Family of 10 causes: <bdi>dependency: no route to host * from here",
		"<strong>host</strong>: 10 values", "<dt>Selected</dt><dd>10</dd>")
	says("/letters?filter=family:ffff", "no family has the ID &#34;ffff&#34; now: the page Groups shows what there is")
	if body := s.page(http.StatusNotFound, "/groups?family=ffff"); !strings.Contains(body, "no family of the causes that match") {
		t.Errorf("an unknown family: %s", body)
	}
}

// between returns what lies between two texts.
func between(t *testing.T, body, from, to string) string {
	t.Helper()
	_, after, found := strings.Cut(body, from)
	if !found {
		t.Fatalf("no %q in\n%s", from, body)
	}
	text, _, _ := strings.Cut(after, to)
	return text
}

// A family with more groups than a filter takes opens too, and offers no redrive.
func TestAFamilyBeyondAFilter(t *testing.T) {
	t.Parallel()
	var list []nixie.Letter
	for i := range 1001 {
		name := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").
			Replace(fmt.Sprint(i))
		list = append(list, letter(i+1, "orders", "dependency: no route to host "+name, name, time.Hour))
	}
	s := open(t, console.Options{}, list...)
	id := between(t, s.page(http.StatusOK, "/groups"), "family=", `"`)
	body := s.page(http.StatusOK, "/groups?family="+id)
	if !strings.Contains(body, "25 of") || strings.Contains(body, "Redrive…</a> <a") {
		t.Errorf("the family opens as\n%s", body)
	}
	const says = "family: the filter chooses 1001 groups, the limit is 1000: add queue:, type: or died: to it"
	if body := s.page(http.StatusOK, "/redrive?filter=family:"+id); !strings.Contains(body, says) {
		t.Errorf("it does not say %q:\n%s", says, body)
	}
}
