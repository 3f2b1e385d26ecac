package letterfile

import (
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// fromStory reads a letter as nixie dlq export writes it.
func fromStory(raw []byte) (Record, error) {
	var story office.LetterDetail
	if err := itemfile.Decode(raw, &story, true); err != nil {
		return Record{}, err
	}
	l, err := story.Letter()
	return Record{Letter: l, Masked: story.Masked}, err
}
