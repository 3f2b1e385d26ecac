package letterfile

import (
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/office"
)

// fromDetail reads a letter in the form of nixie dlq export.
func fromDetail(raw []byte) (Record, error) {
	var detail office.LetterDetail
	if err := itemfile.Decode(raw, &detail, true); err != nil {
		return Record{}, err
	}
	l, err := detail.Letter()
	return Record{Letter: l, Masked: detail.Masked}, err
}
