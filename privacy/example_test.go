package privacy_test

import (
	"fmt"
	"regexp"

	"github.com/nixie-go/nixie/privacy"
)

func ExampleMask() {
	mask := privacy.Mask{privacy.Secrets, privacy.Pattern(regexp.MustCompile(`cust-(\d+)`)), privacy.Values("correct horse")}
	fmt.Println(mask.Text("dial postgres://app:hunter2@db/orders: refused"))
	fmt.Println(mask.Text(`body {"api_key":"abc123"} of cust-4711: the word is correct horse`))
	fmt.Println(mask.Text("password: authentication failed"))
	// Output:
	// dial postgres://app:***@db/orders: refused
	// body {"api_key":"***"} of cust-***: the word is ***
	// password: authentication failed
}
