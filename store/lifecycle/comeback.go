package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// CameBack reports whether a letter from elsewhere is a later death, with a foreign broker,
// of a message that is here: one of a later life, or of the life that was handed to that
// broker. A message that is on its way here cannot have died there.
func CameBack(status nixie.Status, state nixie.State, generation int, given *nixie.Letter) bool {
	if state == "" || state == nixie.Queued || state == nixie.Leased || store.Comeback(status, given.Status) == nil {
		return false
	}
	handedOver := status == nixie.StatusResolved && state == nixie.Canceled
	died := given.Message.Generation
	return died > generation || handedOver && died == generation
}
