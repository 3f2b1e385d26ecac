package match

import (
	"slices"

	"github.com/nixie-go/nixie/bench/contest"
)

// median returns the median of a list; for an even length the mean of the middle two, for none 0.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// shown returns the cost that the tables use for Nixie's ratio.
func shown(s contest.Scenario) Cost {
	if s.Waits() {
		return FromCall
	}
	return Clock
}

func each(of Cost, list []contest.Result) []float64 {
	values := make([]float64, len(list))
	for i := range list {
		values[i] = of(&list[i])
	}
	return values
}

// ratio returns the median over the rounds of the ratio of two costs in the same round.
func ratio(one, other []float64) float64 {
	var list []float64
	for i := range min(len(one), len(other)) {
		list = append(list, other[i]/one[i])
	}
	return median(list)
}

// summary holds the medians of one library in one scenario.
type summary struct {
	Scenario   contest.Scenario `json:"scenario"`
	Library    string           `json:"library"`
	N          int              `json:"n"`
	Rate       float64          `json:"rate_per_s,omitempty"`
	Slowest    float64          `json:"slowest_per_s,omitempty"`
	Fastest    float64          `json:"fastest_per_s,omitempty"`
	CPU        float64          `json:"cpu_us_per_message"`
	Busy       float64          `json:"busy_processors"`
	Memory     float64          `json:"peak_memory_bytes"`
	File       float64          `json:"file_bytes"`
	Indexes    float64          `json:"index_bytes,omitempty"`
	ServerCPU  float64          `json:"server_cpu_us_per_message,omitempty"`
	WAL        float64          `json:"wal_bytes_per_message,omitempty"`
	CallP50    float64          `json:"from_call_p50_us,omitempty"`
	CallP99    float64          `json:"from_call_p99_us,omitempty"`
	ReturnP50  float64          `json:"from_return_p50_us,omitempty"`
	ReturnP99  float64          `json:"from_return_p99_us,omitempty"`
	NixieRatio float64          `json:"nixie_ratio,omitempty"` // by which factor Nixie is better
	CPURatio   float64          `json:"cpu_ratio,omitempty"`   // by which factor it takes less processor time
}

func summarize(s contest.Scenario, library string, list []contest.Result) summary {
	of := func(value Cost) float64 { return median(each(value, list)) }
	sum := summary{
		Scenario: s, Library: library, N: list[0].N,
		CPU:    of(func(r *contest.Result) float64 { return micros(r.CPU) / float64(r.N) }),
		Busy:   of(func(r *contest.Result) float64 { return r.CPU.Seconds() / r.Wall.Seconds() }),
		Memory: of(func(r *contest.Result) float64 { return float64(r.Memory) }),
		File:   of(func(r *contest.Result) float64 { return float64(r.File) }),

		Indexes:   of(func(r *contest.Result) float64 { return float64(r.Indexes) }),
		ServerCPU: of(func(r *contest.Result) float64 { return micros(r.ServerCPU) / float64(r.N) }),
		WAL:       of((*contest.Result).WALEach),
	}
	if s.Waits() {
		sum.CallP50 = of(func(r *contest.Result) float64 { return micros(r.Latency.FromCall.P50) })
		sum.CallP99 = of(func(r *contest.Result) float64 { return micros(r.Latency.FromCall.P99) })
		sum.ReturnP50 = of(func(r *contest.Result) float64 { return micros(r.Latency.FromReturn.P50) })
		sum.ReturnP99 = of(func(r *contest.Result) float64 { return micros(r.Latency.FromReturn.P99) })
		return sum
	}
	sum.Rate = of((*contest.Result).Rate)
	sum.Slowest, sum.Fastest = sum.Rate, sum.Rate
	for i := range list {
		sum.Slowest, sum.Fastest = min(sum.Slowest, list[i].Rate()), max(sum.Fastest, list[i].Rate())
	}
	return sum
}
