package memory_test

import (
	"testing"

	"github.com/nixie-go/nixie/store/storetest"
)

var harness = storetest.Harness{Open: storetest.Memory}

func TestStore(t *testing.T)      { storetest.Run(t, harness) }
func TestModel(t *testing.T)      { storetest.Model(t, harness) }
func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }
