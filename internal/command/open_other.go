//go:build !unix

package command

const openGently = 0
