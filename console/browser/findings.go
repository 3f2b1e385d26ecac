package browser

import (
	"encoding/json"
	"strconv"
	"strings"
)

// event has the parts of all events that a tab looks at.
type event struct {
	Type              string
	EncodedDataLength float64
	FrameID, LoaderID string
	Name, Message     string
	Request           struct{ URL string }
	Response          struct{ Status int64 }
	ExceptionDetails  struct{ Text string }
	Args              json.RawMessage
	Entry             struct{ Level, Text, URL string }
	Issue             struct {
		Details struct {
			ContentSecurityPolicyIssueDetails *struct{ ViolatedDirective string }
		}
	}
}

// hear counts the events of a tab.
func (t *Tab) hear(method string, params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e event
	err := json.Unmarshal(params, &e)
	if t.count(method, &e) && err != nil {
		t.find("event", method+": "+err.Error())
	}
}

// count counts an event, unless it is of a kind that is not looked at.
func (t *Tab) count(method string, e *event) bool {
	switch method {
	case "Page.lifecycleEvent":
		if e.FrameID == t.frame && e.Name == "load" {
			t.loaded = e.LoaderID
			close(t.loads)
			t.loads = make(chan struct{})
		}
	case "Network.requestWillBeSent":
		t.seen.Requests++
		if e.Type == "Document" {
			t.seen.Pages++
		}
		if !strings.HasPrefix(e.Request.URL, t.origin+"/") {
			t.find("request", e.Request.URL)
		}
	case "Network.responseReceived":
		if e.Type == "Document" && e.FrameID == t.frame {
			t.statuses[e.LoaderID] = e.Response.Status
		}
	case "Network.loadingFinished":
		t.seen.Bytes += e.EncodedDataLength
	case "Page.javascriptDialogOpening":
		t.find("dialog", e.Message)
	case "Runtime.exceptionThrown":
		t.find("exception", e.ExceptionDetails.Text)
	case "Runtime.consoleAPICalled":
		if e.Type == "error" || e.Type == "assert" {
			t.find("console", string(e.Args))
		}
	case "Log.entryAdded":
		if e.Entry.Level == "error" && !t.isExpected(e.Entry.Text) {
			t.find("log", e.Entry.Text+" "+address(e.Entry.URL))
		}
	case "Audits.issueAdded":
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			t.find("policy of content", d.ViolatedDirective)
		}
	default:
		return false
	}
	return true
}

// isExpected reports whether a browser notes a status that a page may have.
func (t *Tab) isExpected(text string) bool {
	const noted = "the server responded with a status of "
	return strings.Contains(text, noted+strconv.FormatInt(t.expected, 10)) || t.expected == 0 && strings.Contains(text, noted+"4")
}

// find notes something that no page may do.
func (t *Tab) find(kind, what string) { t.seen.Findings = append(t.seen.Findings, kind+": "+what) }
