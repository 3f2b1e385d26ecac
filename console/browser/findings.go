package browser

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// hear counts the events of a tab.
func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.seen.Requests++
		if e.Type == network.ResourceTypeDocument {
			t.seen.Pages++
		}
		if !strings.HasPrefix(e.Request.URL, t.origin+"/") {
			t.find("request", e.Request.URL)
		}
	case *network.EventLoadingFinished:
		t.seen.Bytes += e.EncodedDataLength
	case *page.EventJavascriptDialogOpening:
		t.find("dialog", e.Message)
	case *runtime.EventExceptionThrown:
		t.find("exception", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			t.find("console", fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !t.isExpected(e.Entry.Text) {
			t.find("log", e.Entry.Text+" "+address(e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details; d != nil && d.ContentSecurityPolicyIssueDetails != nil {
			t.find("policy of content", d.ContentSecurityPolicyIssueDetails.ViolatedDirective)
		}
	}
}

// isExpected reports whether a browser notes a status that a page may have.
func (t *Tab) isExpected(text string) bool {
	const noted = "the server responded with a status of "
	return strings.Contains(text, noted+strconv.FormatInt(t.expected, 10)) || t.expected == 0 && strings.Contains(text, noted+"4")
}

// find notes something that no page may do.
func (t *Tab) find(kind, what string) { t.seen.Findings = append(t.seen.Findings, kind+": "+what) }
