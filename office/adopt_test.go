package office_test

import (
	"context"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
)

func foreign(key string) nixie.Letter {
	return nixie.Letter{
		Message: nixie.Message{Queue: "q", Key: key, Body: []byte(key), Origin: &nixie.Origin{System: "elsewhere", MessageID: key}},
		Cause:   nixie.CauseAdopted, Status: nixie.StatusOpen, DiedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func TestKnownSaysWhatAdoptWillSay(t *testing.T) {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	o, err := office.New(office.Config{Store: st, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	here := foreign("here")
	first, errs := o.Adopt(ctx, []nixie.Letter{here}, "moved")
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	byID, other, damaged := here, here, foreign("damaged")
	byID.ID, byID.Message.Origin = first[0].ID, nil
	other.Message.Body = []byte("other")
	damaged.Damage = []string{"body"}
	sameKey := foreign("here")
	sameKey.Message.Origin.System = "a third system"
	letters := []nixie.Letter{foreign("new"), here, byID, other, damaged, sameKey}
	said, saidErrs := o.PreviewAdopt(ctx, letters)
	if rest, _, err := st.Letters(ctx, nixie.Filter{}, store.Page{}); err != nil || len(rest) != 1 {
		t.Fatalf("looking changed the store: %d letters, %v", len(rest), err)
	}
	done, doneErrs := o.Adopt(ctx, letters, "moved")
	for i := range letters {
		if nixie.CodeOf(saidErrs[i]) != nixie.CodeOf(doneErrs[i]) || said[i].Duplicate != done[i].Duplicate ||
			said[i].Different != done[i].Different ||
			said[i].Duplicate && said[i].ID != done[i].ID {
			t.Errorf("letter %d: said %+v, %v; done %+v, %v", i, said[i], saidErrs[i], done[i], doneErrs[i])
		}
	}
	if done[0].Duplicate || !done[2].Duplicate || !done[3].Different || doneErrs[4] == nil || done[5].Duplicate {
		t.Errorf("the answers do not differ as the letters do: %+v, %v", done, doneErrs)
	}
	entries, _, err := st.Audit(ctx, store.AuditFilter{Chain: "q"}, store.Page{})
	if err != nil || len(entries) != 3 || entries[0].Actor != "ann" || entries[0].Reason != "moved" || entries[0].Event != store.OnAdopt {
		t.Errorf("the audit is %+v, %v", entries, err)
	}
}

func TestStoriesThatAreNone(t *testing.T) {
	text := "x"
	for name, s := range map[string]office.LetterDetail{
		"operation":  {Operation: "x"},
		"hash":       {Message: office.MessageView{Hash: "x"}},
		"short hash": {Message: office.MessageView{Hash: "00"}},
		"bytes":      {Message: office.MessageView{Bytes: office.Bytes{Text: &text, Base64: &text}}},
		"base64":     {Message: office.MessageView{Bytes: office.Bytes{Base64: &text}}},
		"artifacts":  {Artifacts: []office.AttachmentView{{Name: "a", Text: &text}}},
		"attachment": {History: []office.FailureView{{Attachments: []office.AttachmentView{{Base64: &text}}}}},
		"duration":   {History: []office.FailureView{{DurationMS: -1}}},
		"for ever":   {History: []office.FailureView{{DurationMS: 1e300}}},
	} {
		if _, err := s.Letter(); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
