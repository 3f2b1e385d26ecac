package brokertest_test

import (
	"testing"

	"github.com/nixie-go/nixie/broker/brokertest"
)

func TestLog(t *testing.T) {
	brokertest.Run(t, func(testing.TB) brokertest.Fixture { return brokertest.NewLog() })
}

func TestTimed(t *testing.T) {
	brokertest.Run(t, func(testing.TB) brokertest.Fixture { return brokertest.NewTimed() })
}

func TestCounting(t *testing.T) {
	brokertest.Run(t, func(testing.TB) brokertest.Fixture { return brokertest.NewCounting() })
}

func TestMailbox(t *testing.T) {
	brokertest.Run(t, func(testing.TB) brokertest.Fixture { return brokertest.NewMailbox() })
}
