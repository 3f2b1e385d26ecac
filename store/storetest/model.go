package storetest

import "testing"

func Model(t *testing.T, h Harness) {}
