package filter_test

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// A filter has a text form, the one of the command line. The same value chooses
// letters and messages, in the library as in every face.
func ExampleParse() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f, err := filter.Parse("queue:billing reason:timeout,dependency died:>now-1h", now)
	if err != nil {
		fmt.Println(err)
		return
	}
	letter := nixie.Letter{
		Message: nixie.Message{Queue: "billing"}, Reason: nixie.ReasonTimeout, DiedAt: now.Add(-time.Minute),
	}
	fmt.Println(filter.MatchLetter(&f, &letter, now))
	letter.DiedAt = now.Add(-2 * time.Hour)
	fmt.Println(filter.MatchLetter(&f, &letter, now))

	_, err = filter.Parse("queue:billing died:>yesterday", now)
	fmt.Println(err)
	// Output:
	// true
	// false
	// filter, column 21: "yesterday" is no moment: write 2026-01-31, 2026-01-31T10:00:00Z or now-2h
	//   queue:billing died:>yesterday
	//                       ^
}
