package office

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
)

// Bounds of regrouping.
const (
	regroupStep   = 500     // letters of one transaction, and groups of one look for letters
	maxMoves      = 1_000   // that a view lists
	mostMoves     = 100_000 // that are counted one by one
	regroupReason = "groups that earlier builds named"
)

// RegroupRequest asks to name the groups of letters anew.
type RegroupRequest struct {
	Filter   nixie.Filter // of letters, in every status; the zero filter matches all
	Reason   string       // for the audit; optional
	DryRun   bool         // change nothing
	Progress func(RegroupView)
}

// RegroupView tells which groups join and part. Dlq regroup prints it.
type RegroupView struct {
	DryRun    bool          `json:"dry_run"`
	Letters   int64         `json:"letters"`   // that match, of groups that earlier builds named
	Regrouped int64         `json:"regrouped"` // or would be
	Kept      int64         `json:"kept"`      // what their group is read from is lost
	Skipped   []Count       `json:"skipped"`   // by why
	Before    int           `json:"groups_before"`
	After     int           `json:"groups_after"`
	Joined    int           `json:"joined"` // groups that have letters of several, or had letters before
	Parted    int           `json:"parted"` // groups whose letters go to several
	Moves     []RegroupMove `json:"moves"`  // the largest, at most 1,000
}

// RegroupMove counts the letters that go from one group to another.
type RegroupMove struct {
	From      string `json:"from"` // fingerprint
	To        string `json:"to"`
	Signature string `json:"signature"` // of the new group
	Letters   int64  `json:"letters"`
}

// Regroup names the groups of letters anew that an earlier build named, from what each letter
// keeps: see [policy.GroupOf]. It changes label and fingerprint of a letter and nothing else, 500
// letters in one transaction, and leaves one entry in the audit of each queue. It skips letters
// that are redriving or that an operation has selected. When it ends early, the view has the counts
// so far, and the next call goes on with what is left. Two at once are safe.
func (o *Office) Regroup(ctx context.Context, r RegroupRequest) (RegroupView, error) {
	if o.store.Features().Regroup == nil {
		return RegroupView{}, nixie.Errorf(nixie.CodeUnavailable,
			"this store keeps no groups: it names those of its letters whenever they are read, and there is nothing to regroup")
	}
	g := &regrouping{Office: o, request: r, moves: map[[2]string]*RegroupMove{}, skipped: map[string]int64{}, audited: map[string]bool{}}
	groups, _, err := o.store.Count(ctx, r.Filter, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Scan: store.ScanAll})
	if err != nil {
		return g.view(), err
	}
	g.sizes = store.Sizes(groups[0])
	var outdated []string
	for _, group := range groups[0] {
		if policy.Outdated(group.Key) {
			outdated = append(outdated, group.Key)
		}
	}
	for of := range slices.Chunk(outdated, regroupStep) {
		if err := g.groups(ctx, of); err != nil {
			return g.view(), err
		}
	}
	return g.view(), nil
}

// regrouping is one call of Regroup.
type regrouping struct {
	*Office
	request RegroupRequest
	sizes   map[string]int64 // of the groups before
	moves   map[[2]string]*RegroupMove
	skipped map[string]int64
	audited map[string]bool // queues

	letters, regrouped, kept int64
}

// groups regroups the letters of some groups, queue by queue.
func (g *regrouping) groups(ctx context.Context, of []string) error {
	f := g.request.Filter
	f.Fingerprints = of
	queues, _, err := g.store.Count(ctx, f, store.Counting{By: []store.GroupBy{store.ByQueue}, Scan: store.ScanAll})
	if err != nil {
		return err
	}
	for _, queue := range queues[0] {
		f.Queues = []string{queue.Key}
		var step []nixie.Letter
		var was []string
		for l, err := range g.AllLetters(ctx, f, true) {
			if err != nil {
				return err
			}
			g.letters++
			label, fingerprint := policy.GroupOf(&l)
			if policy.Outdated(fingerprint) {
				g.kept++
				continue
			}
			was = append(was, l.Fingerprint)
			step = append(step, nixie.Letter{ID: l.ID, Revision: l.Revision, Signature: label, Fingerprint: fingerprint})
			if len(step) == regroupStep {
				if err := g.write(ctx, queue.Key, step, was); err != nil {
					return err
				}
				step, was = step[:0], was[:0]
			}
		}
		if err := g.write(ctx, queue.Key, step, was); err != nil {
			return err
		}
	}
	return nil
}

// write gives letters of one queue their groups.
func (g *regrouping) write(ctx context.Context, queue string, step []nixie.Letter, was []string) error {
	r := store.Regrouping{Letters: step, Reason: cmp.Or(g.request.Reason, regroupReason), DryRun: g.request.DryRun}
	if !g.audited[queue] {
		r.Actor = g.actor
	}
	for i, err := range g.store.Features().Regroup(ctx, r) {
		var told *nixie.Error
		switch {
		case err == nil:
			g.audited[queue] = true
			g.count(&step[i], was[i])
		case refused(err) && errors.As(err, &told):
			g.skipped[told.Text]++
		default:
			return err
		}
	}
	if g.request.Progress != nil {
		g.request.Progress(RegroupView{Letters: g.letters, Regrouped: g.regrouped})
	}
	return nil
}

// count counts a letter that has moved.
func (g *regrouping) count(l *nixie.Letter, from string) {
	g.regrouped++
	key := [2]string{from, l.Fingerprint}
	if g.moves[key] == nil && len(g.moves) < mostMoves {
		g.moves[key] = &RegroupMove{From: from, To: l.Fingerprint, Signature: l.Signature}
	}
	if move := g.moves[key]; move != nil {
		move.Letters++
	}
}

// view sums up.
func (g *regrouping) view() RegroupView {
	v := RegroupView{DryRun: g.request.DryRun, Letters: g.letters, Regrouped: g.regrouped, Kept: g.kept,
		Skipped: sortedCounts(g.skipped), Moves: []RegroupMove{}}
	from, to := map[string]int{}, map[string]int{}
	for _, move := range g.moves {
		v.Moves = append(v.Moves, *move)
		from[move.From]++
		to[move.To]++
	}
	v.Before, v.After = len(from), len(to)
	for _, n := range from {
		if n > 1 {
			v.Parted++
		}
	}
	for fingerprint, n := range to {
		if n > 1 || g.sizes[fingerprint] > 0 {
			v.Joined++
		}
	}
	slices.SortFunc(v.Moves, func(a, b RegroupMove) int {
		return cmp.Or(byCount(a.Letters, a.From, b.Letters, b.From), cmp.Compare(a.To, b.To))
	})
	v.Moves = v.Moves[:min(len(v.Moves), maxMoves)]
	return v
}
