// Command nixie runs work that can fail, and looks after what did.
package main

import (
	"os"

	"github.com/nixie-go/nixie/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
