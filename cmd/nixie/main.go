// Command nixie runs work that can fail, and keeps the failed work as dead letters.
package main

import (
	"os"

	"github.com/nixie-go/nixie/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
