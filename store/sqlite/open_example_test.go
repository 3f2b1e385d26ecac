package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// A store is a file in a folder that exists. Any number of processes may have it
// open; what one enqueued is there for all.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Println(err)
		}
	}()
	path := filepath.Join(folder, "billing.db")

	ctx := context.Background()
	for _, owner := range []string{"producer", "worker"} {
		st, err := sqlite.Open(path, sqlite.Options{Owner: owner})
		if err != nil {
			fmt.Println(err)
			return
		}
		if owner == "producer" {
			_, err = st.Enqueue(ctx, nixie.Message{Queue: "billing", Body: []byte("invoice 4711")})
		} else {
			var got []*nixie.Delivery
			if got, err = st.Claim(ctx, "billing", nixie.Want{Max: 1}); err == nil {
				fmt.Printf("%s holds %q, lease %d\n", got[0].Lease.Owner, got[0].Body, got[0].Lease.Number)
			}
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := st.Close(); err != nil { // waits for running calls
			fmt.Println(err)
			return
		}
	}
	// Output: worker holds "invoice 4711", lease 1
}
