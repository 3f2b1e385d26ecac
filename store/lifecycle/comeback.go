package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// CameBack reports whether a letter from elsewhere tells of a later death of a message of the
// store, with a foreign broker. That is a death in a later generation, or in the generation that
// was given to that broker. A message that is queued or leased here cannot have died there.
func CameBack(status nixie.Status, state nixie.State, generation int, given *nixie.Letter) bool {
	if state == "" || state == nixie.Queued || state == nixie.Leased || store.Comeback(status, given.Status) == nil {
		return false
	}
	handedOver := status == nixie.StatusResolved && state == nixie.Canceled
	died := given.Message.Generation
	return died > generation || handedOver && died == generation
}
