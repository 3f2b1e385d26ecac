package mapreduce

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/store"
)

// Counts are those of the items of a job that reduce is about.
type Counts struct {
	Total      int64 `json:"total"`
	Successful int64 `json:"successful"`
	Dead       int64 `json:"dead"`
}

// Key tells one reduce from the next: once more items have succeeded, it is out of date.
func (c Counts) Key() string { return fmt.Sprintf("%s %d of %d", Reduce, c.Successful, c.Total) }

// Failed counts the items that did not succeed.
func (c Counts) Failed() int64 { return c.Total - c.Successful }

// Values are the counts, and the results of a file, as steps know them by name. Results that are
// longer than a value may be become a text that is refused where it is used.
func (c Counts) Values(results string) map[string]json.RawMessage {
	number := func(n int64) json.RawMessage { return json.RawMessage(strconv.FormatInt(n, 10)) }
	return map[string]json.RawMessage{
		"total": number(c.Total), "successful": number(c.Successful), "failed": number(c.Failed()), "results": resultsValue(results),
	}
}

// resultsValue makes a list of the lines of a file.
func resultsValue(path string) json.RawMessage {
	var lines []byte
	about, err := os.Stat(path)
	if err == nil && about.Size() <= command.MaxValue {
		lines, err = os.ReadFile(path)
	}
	if err != nil || about.Size() > command.MaxValue {
		lines, _ = json.Marshal(strings.Repeat(" ", command.MaxValue+1)) // a text is no error
		return lines
	}
	return json.RawMessage("[" + strings.ReplaceAll(strings.TrimSpace(string(lines)), "\n", ",") + "]")
}

// ItemResult tells reduce how an item ended.
type ItemResult struct {
	Item   string          `json:"item"`
	Status string          `json:"status"` // succeeded, dead or discarded
	Result json.RawMessage `json:"result"` // null if it has none
	Letter *ItemLetter     `json:"letter"` // null unless it is dead
}

// ItemLetter is the letter of a dead item.
type ItemLetter struct {
	ID        string       `json:"id"`
	Reason    nixie.Reason `json:"reason"`
	Message   string       `json:"message"`
	Signature string       `json:"signature"`
}

// WriteResults writes a line of JSON for each item of a job, in the order of its list. It returns
// the variables that tell a command of them.
func WriteResults(ctx context.Context, path string, st store.Store, queue string, job *worktree.Job, c Counts) ([]string, error) {
	entries, err := itemsOf(ctx, st, queue)
	if err != nil {
		return nil, err
	}
	letters, err := lettersOf(ctx, st, queue)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nixie.WithReason(nixie.Transient(fmt.Errorf("file of the results: %w", err)), nixie.ReasonResource)
	}
	to := bufio.NewWriter(file)
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false) // it is read by commands
	for _, e := range entries {
		line := ItemResult{Item: e.item, Status: e.status, Letter: letters[e.id]}
		if line.Result, err = job.ResultOf(e.item); err == nil {
			err = encoder.Encode(line)
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, to.Flush(), file.Close()); err != nil {
		return nil, nixie.WithReason(nixie.Transient(fmt.Errorf("file of the results: %w", err)), nixie.ReasonResource)
	}
	return []string{
		"NIXIE_RESULTS_FILE=" + path, fmt.Sprint("NIXIE_MAP_TOTAL=", c.Total), fmt.Sprint("NIXIE_MAP_SUCCESSFUL=", c.Successful),
		fmt.Sprint("NIXIE_MAP_FAILED=", c.Failed()), fmt.Sprint("NIXIE_MAP_DEAD=", c.Dead),
	}, nil
}

// entry is an item as the store has it.
type entry struct {
	id     nixie.ID
	item   string
	status string
	line   int // of its list
}

// itemsOf lists the items of a job in the order of its list.
func itemsOf(ctx context.Context, st store.Overview, queue string) (all []entry, err error) {
	for page := (store.Page{Limit: resultsPage}); ; {
		found, next, err := st.Messages(ctx, nixie.Filter{Queues: []string{queue}}, page)
		if err != nil {
			return nil, err
		}
		for i := range found {
			m := &found[i].Message
			e := entry{id: m.ID, item: cmp.Or(m.Key, m.ID.String()), status: "discarded"}
			switch m.State {
			case nixie.Succeeded, nixie.Dead:
				e.status = string(m.State)
			}
			e.line, _ = strconv.Atoi(m.Header(items.HeaderLine)) // what another producer enqueued has none
			all = append(all, e)
		}
		if page.Cursor = next; next == "" {
			slices.Reverse(all) // a listing has the newest first
			slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.line, b.line) })
			return all, nil
		}
	}
}

// resultsPage is the number of items that one call reads.
const resultsPage = 1000

// lettersOf returns the letters of dead items by their messages.
func lettersOf(ctx context.Context, st store.DeadLetters, queue string) (map[nixie.ID]*ItemLetter, error) {
	all := map[nixie.ID]*ItemLetter{}
	f := nixie.Filter{Queues: []string{queue}, Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}}
	for page := (store.Page{Limit: resultsPage}); ; {
		found, next, err := st.Letters(ctx, f, page)
		if err != nil {
			return nil, err
		}
		for i := range found {
			l := &found[i]
			all[l.Message.ID] = &ItemLetter{ID: l.ID.String(), Reason: l.Reason, Message: l.Message.LastFailure, Signature: l.Signature}
		}
		if page.Cursor = next; next == "" {
			return all, nil
		}
	}
}
