//go:build !unix

package command

const safeOpenFlags = 0
