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

// maskFlags are --mask and --no-mask of commands that record failures.
type maskFlags struct {
	patterns []string
	off      bool
}

func (f *maskFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.patterns, "mask", nil,
		"hide what matches this regular expression, or its groups, in failures too; may be repeated")
	fs.BoolVar(&f.off, "no-mask", false, "record and show secrets in failures as they are")
}

// mask returns the mask that the flags ask for; nil hides nothing.
func (f *maskFlags) mask(env config.Environment) (app.Mask, error) {
	if f.off && len(f.patterns) > 0 {
		return nil, usagef("--no-mask and --mask contradict each other: give one of them")
	}
	if f.off {
		return nil, nil
	}
	return app.NewMask(config.MaskPatterns(f.patterns, env), config.Inherited())
}

// masking hides secrets in letters and messages that are shown, also in those that were recorded
// without a mask.
type masking struct {
	mask   app.Mask
	always bool // the command has no --unmask
	off    bool
	hidden bool // something of the present letter or message
}

func (k *masking) register(fs *pflag.FlagSet) {
	if k.always {
		return
	}
	fs.BoolVar(&k.off, "unmask", false, "show secrets in headers, bodies and failures as they are")
}

func (k *masking) read(g *globals) (err error) {
	if !k.off {
		k.mask, err = app.NewMask(config.MaskPatterns(nil, g.Env), config.Inherited())
	}
	return err
}

// sayHidden tells a reader that something was hidden.
func (k *masking) sayHidden(w io.Writer) {
	if k.hidden {
		fmt.Fprintf(w, "\nSecrets are hidden in this: --unmask shows them.\n")
	}
}

func (k *masking) text(s string) string {
	masked := k.mask.Text(s)
	k.hidden = k.hidden || masked != s
	return masked
}

// letter hides the secrets of a letter, except in its body.
func (k *masking) letter(l *nixie.Letter) {
	k.message(&l.Message, l.History)
	l.Signature = k.text(l.Signature)
	if l.Original != nil {
		l.Original.Headers = k.headers(l.Original.Headers)
	}
	artifacts := nixie.Failure{Attachments: l.Artifacts}
	k.failure(&artifacts)
	l.Artifacts = artifacts.Attachments
}

// message hides the secrets of a message and its failures. It forgets what was hidden in the one
// before.
func (k *masking) message(m *nixie.Message, history []nixie.Failure) {
	k.hidden = false
	m.LastFailure = k.text(m.LastFailure)
	m.Headers = k.headers(m.Headers)
	for i := range history {
		k.failure(&history[i])
	}
}

func (k *masking) headers(list []nixie.Header) []nixie.Header {
	list = slices.Clone(list)
	for i, h := range list {
		list[i].Value = k.mask.Header(h.Name, h.Value)
		k.hidden = k.hidden || list[i].Value != h.Value
	}
	return list
}

func (k *masking) failure(f *nixie.Failure) {
	before := *f
	k.mask.Failure(f)
	k.hidden = k.hidden || !reflect.DeepEqual(before, *f)
}

// body hides the secrets in the body of a view, if the body is text.
func (k *masking) body(b *office.Bytes) {
	if b.Text != nil {
		masked := k.text(*b.Text)
		b.Text = &masked
	}
}

// maskedMessage marks a message in which something was hidden: it differs from the one in the
// store.
type maskedMessage struct {
	office.MessageView
	Masked bool `json:"masked,omitempty"`
}

func (k *masking) story(l *nixie.Letter) office.LetterDetail {
	s := office.ViewLetterDetail(l)
	s.Masked = k.hidden
	return s
}
