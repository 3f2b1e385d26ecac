package where

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/items"
)

// In the expressions of files a bare name is a field of the item, also if it is a fact of a letter.
func TestOfItem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"severity == 'high' || severity == 'critical'":           "item.severity == 'high' || item.severity == 'critical'",
		"File.score >= 10 OR Function.unified_score.final >= 10": "item.File.score >= 10 OR item.Function.unified_score.final >= 10",
		`path matches '\.rs$' && has_issues == true`:             `item.path matches '\.rs$' && item.has_issues == true`,
		"status != 'x' or !reason and queue in ['a', type]":      "item.status != 'x' or !item.reason and item.queue in ['a', item.type]",
		"item.priority > 5 && class  == null":                    "item.priority > 5 && item.class  == null",
		"is_null(owner) && length( tags , 2)":                    "is_null(item.owner) && length( item.tags , 2)",
		"a.status.item[0] == b[c].d":                             "item.a.status.item[0] == item.b[item.c].d",
		"'a b' == \"status\"":                                    "'a b' == \"status\"",
		"ünï_cödé == 1":                                          "item.ünï_cödé == 1",
	} {
		got, err := OfItem(text)
		if err != nil || got != want {
			t.Errorf("%s\nbecame %s %v\nwant   %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"a ==":                     "at character 5: found the end",
		"a b":                      "found b, want the end",
		"nothing(a)":               "there is no function nothing",
		"":                         "found the end",
		strings.Repeat("a", 5<<10): "give at most 4096",
	} {
		if got, err := OfItem(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %s %v, want %s", text, got, err, says)
		}
	}
}

// All names of a condition are values, and those that are not there are told.
func TestConditions(t *testing.T) {
	t.Parallel()
	values, ok := items.Value([]byte(`{"item": {"n": 3, "none": null}, "count": "7", "status": "ok", "shell": {"output": "x"}}`))
	if !ok {
		t.Fatal("no JSON")
	}
	for text, want := range map[string]bool{
		"item.n == 3": true, "item.n > count": false, "count > 3": true, "status == 'ok'": true, "shell.output != 'x'": false,
		"item.none == null": true, "is_null(item.nothing)": true, "true": true, "count": false,
	} {
		c, err := ParseCondition(text)
		if err != nil || c.True(values) != want || len(c.Missing(values)) > 0 || c.String() != text {
			t.Errorf("%s: %v %v, want %v", text, c, err, want)
		}
	}
	c, err := ParseCondition("item.nothing == 1 && other.a > 2 && is_null(item.gone) && item.n == 3")
	if err != nil || strings.Join(c.Missing(values), " ") != "item.nothing other.a" || strings.Join(c.Roots(), " ") != "item other" {
		t.Error(c.Missing(values), c.Roots(), err)
	}
}
