package cli

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/spf13/pflag"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
)

// maskFlags are --mask and --no-mask: what is hidden before it is recorded.
type maskFlags struct {
	patterns []string
	off      bool
}

func (f *maskFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.patterns, "mask", nil, "hide what matches this regular expression, or its groups, in failures too; may be repeated")
	fs.BoolVar(&f.off, "no-mask", false, "record and show secrets in failures as they are")
}

// mask is what the flags ask for; nil hides nothing.
func (f *maskFlags) mask(env config.Environment) (app.Mask, error) {
	if f.off && len(f.patterns) > 0 {
		return nil, usagef("--no-mask and --mask contradict each other: give one of them")
	}
	if f.off {
		return nil, nil
	}
	return app.NewMask(config.MaskPatterns(f.patterns, env), config.Inherited())
}

// veil hides secrets in what is shown of a letter or message, whatever was done
// when it was recorded.
type veil struct {
	mask   app.Mask
	always bool // no flag takes it off
	off    bool
	hid    bool // something in the letter or message in hand
}

func (v *veil) register(fs *pflag.FlagSet) {
	if v.always {
		return
	}
	fs.BoolVar(&v.off, "unmask", false, "show secrets in headers, bodies and failures as they are")
}

func (v *veil) read(g *globals) (err error) {
	if !v.off {
		v.mask, err = app.NewMask(config.MaskPatterns(nil, g.Env), config.Inherited())
	}
	return err
}

// confess tells a reader that something was hidden.
func (v *veil) confess(w io.Writer) {
	if v.hid {
		fmt.Fprintf(w, "\nSecrets are hidden in this: --unmask shows them.\n")
	}
}

func (v *veil) text(s string) string {
	masked := v.mask.Text(s)
	v.hid = v.hid || masked != s
	return masked
}

// letter hides what is secret in a letter but for its body.
func (v *veil) letter(l *nixie.Letter) {
	v.message(&l.Message, l.History)
	l.Signature = v.text(l.Signature)
	if l.Original != nil {
		l.Original.Headers = v.headers(l.Original.Headers)
	}
	artifacts := nixie.Failure{Attachments: l.Artifacts}
	v.failure(&artifacts)
	l.Artifacts = artifacts.Attachments
}

// message does so in a message and its failures, and forgets what was hidden in
// the one before.
func (v *veil) message(m *nixie.Message, history []nixie.Failure) {
	v.hid = false
	m.LastFailure = v.text(m.LastFailure)
	m.Headers = v.headers(m.Headers)
	for i := range history {
		v.failure(&history[i])
	}
}

func (v *veil) headers(list []nixie.Header) []nixie.Header {
	list = slices.Clone(list)
	for i, h := range list {
		list[i].Value = v.mask.Header(h.Name, h.Value)
		v.hid = v.hid || list[i].Value != h.Value
	}
	return list
}

func (v *veil) failure(f *nixie.Failure) {
	before := *f
	v.mask.Failure(f)
	v.hid = v.hid || !reflect.DeepEqual(before, *f)
}

// body hides what is secret in a body of a view, if it is a text.
func (v *veil) body(b *office.Bytes) {
	if b.Text != nil {
		masked := v.text(*b.Text)
		b.Text = &masked
	}
}

// maskedMessage says whether something was hidden in it: then it is not what the
// store has.
type maskedMessage struct {
	office.MessageView
	Masked bool `json:"masked,omitempty"`
}

func (v *veil) story(l *nixie.Letter) office.LetterDetail {
	s := office.ViewLetterDetail(l)
	s.Masked = v.hid
	return s
}
