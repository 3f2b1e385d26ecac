package console

import (
	"context"
	"net/http"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of the pages of streams.
const (
	streamsShown   = 100
	queuesLooked   = 50 // with blocked streams, in which a page looks for them
	followersShown = 20
)

func streamsPage() page {
	return page{path: "streams", title: "Streams", menu: "streams", file: "streams", live: true, show: (*console).showStreams}
}

// streamsData is the blocked streams of all queues, or one page of the streams of a queue.
type streamsData struct {
	Queue   string // "": of all queues
	Streams []streamRow
	Ordered []office.QueueInfo // queues with an order
	More    int                // queues with an order that are not among them
	Next    string
	First   bool
	Cut     bool // there are more blocked streams
}

// streamRow is a stream in a list, with the letter of its dead head.
type streamRow struct {
	office.StreamView
	Dead *nixie.Letter // nil: its head is not dead
}

func (c *console) showStreams(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := streamsData{Queue: r.FormValue("queue"), First: r.FormValue("cursor") == ""}
	var err error
	if d.Queue == "" {
		err = c.blocked(ctx, &d)
	} else {
		err = c.streamsOf(ctx, &d, office.Page{Limit: streamsShown, Cursor: r.FormValue("cursor")})
	}
	if err != nil {
		return answer{}, err
	}
	return answer{Data: d}, c.addLetters(ctx, d.Streams)
}

// blocked finds the blocked streams of all queues, and the queues with an order.
func (c *console) blocked(ctx context.Context, d *streamsData) error {
	queues, err := c.office.Queues(ctx)
	if err != nil {
		return err
	}
	looked := 0
	for _, q := range queues {
		if !q.Settings.Ordered() {
			continue
		}
		if d.Ordered = append(d.Ordered, q); len(d.Ordered) > queuesShown {
			d.Ordered, d.More = d.Ordered[:queuesShown], d.More+1
		}
		if q.Blocked == 0 || d.Cut {
			continue
		}
		list, next, err := c.office.Streams(ctx, q.Name, office.Page{Limit: streamsShown - len(d.Streams)})
		if err != nil {
			return err
		}
		for i := range list {
			if list[i].State == office.StreamBlocked {
				d.Streams = append(d.Streams, streamRow{StreamView: office.ViewStream(&list[i])})
			}
		}
		looked++
		d.Cut = looked == queuesLooked || len(d.Streams) == streamsShown && next != ""
	}
	return nil
}

// streamsOf lists the streams of one queue.
func (c *console) streamsOf(ctx context.Context, d *streamsData, page office.Page) error {
	list, next, err := c.office.Streams(ctx, d.Queue, page)
	for i := range list {
		d.Streams = append(d.Streams, streamRow{StreamView: office.ViewStream(&list[i])})
	}
	d.Next = next
	return err
}

// addLetters adds the letters of dead heads, which say since when and why a stream is blocked.
func (c *console) addLetters(ctx context.Context, streams []streamRow) error {
	var ids []nixie.ID
	for _, s := range streams {
		if id, err := nixie.ParseID(s.Letter); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil // no IDs would ask for all
	}
	letters, _, err := c.office.Letters(ctx, nixie.Filter{IDs: ids}, office.Page{Limit: len(ids)})
	for i := range letters {
		for j := range streams {
			if streams[j].Letter == letters[i].ID.String() {
				streams[j].Dead = &letters[i]
			}
		}
	}
	return err
}

func streamPage() page {
	return page{path: "stream", title: "Stream", file: "stream", live: true, show: (*console).showStream,
		verbs: map[string]verb{"pass": (*console).passStream, "unblock": (*console).unblockStream}}
}

// streamData is one stream: what it waits for, who waits, and what can be done.
type streamData struct {
	streamRow
	Followers []office.MessageView // newest first
	Stays     string               // why its dead head cannot be redriven; "" if it can
	Acts      []act
}

func (c *console) showStream(r *http.Request) (answer, error) {
	ctx, queue, name := r.Context(), r.FormValue("queue"), r.FormValue("name")
	s, err := c.office.Stream(ctx, queue, name)
	if err != nil {
		return answer{}, err
	}
	row := []streamRow{{StreamView: office.ViewStream(&s)}}
	if err := c.addLetters(ctx, row); err != nil {
		return answer{}, err
	}
	d := streamData{streamRow: row[0]}
	if d.Dead != nil {
		d.Stays = c.office.NoRedrive(d.Dead)
	}
	records, err := c.office.Followers(ctx, queue, name, followersShown)
	for i := range records {
		d.Followers = append(d.Followers, office.ViewMessage(&records[i].Message))
	}
	stops := s.State == office.StreamBlocked || s.State == office.StreamWaiting
	if waits := s.Followers - s.Passing; stops && waits > 0 {
		d.Acts = append(d.Acts, act{To: c.link("stream/pass", "queue", queue, "name", name),
			Name: "Let " + plural(waits, "message") + " pass",
			Text: "The messages that wait now go on without the head, which keeps its position. Later ones wait for it."})
	}
	if s.State == office.StreamBlocked {
		d.Acts = append(d.Acts, act{To: c.link("stream/unblock", "queue", queue, "name", name), Name: "Unblock", Tone: "bad",
			Text: "The stream goes on without its dead head, for good: a redrive puts that message last."})
	}
	return answer{Title: line(name), Data: d}, err
}

// passStream lets the messages that wait in a stream go before its head.
func (c *console) passStream(r *http.Request) (string, error) {
	queue, name := r.FormValue("queue"), r.FormValue("name")
	n, err := c.office.Pass(r.Context(), queue, name, reason(r))
	return c.done("stream", "passed", n, "message", "queue", queue, "name", name), err
}

// unblockStream lets a stream go on without its dead head.
func (c *console) unblockStream(r *http.Request) (string, error) {
	queue, name := r.FormValue("queue"), r.FormValue("name")
	n, err := c.office.Unblock(r.Context(), queue, name, reason(r))
	return c.done("stream", "unblocked", n, "letter", "queue", queue, "name", name), err
}
