// Package grouping scores how well failures are grouped: it compares groups with labels that say
// which failures have one cause.
package grouping

// Score compares groups with labels. Each share is between 0 and 1.
type Score struct {
	Precision float64 // of the pairs in one group, those with one label; 1 without a pair
	Recall    float64 // of the pairs with one label, those in one group; 1 without a pair
	Exact     float64 // of the members, those whose group has all members of their label and no other
	Members   int
	Labels    int
	Groups    int
}

// Pair is a member with the label that it has and the group that it was given.
type Pair struct{ Label, Group string }

// Of scores groups. The time is linear in the members.
func Of(members []Pair) Score {
	labels, groups, both := map[string]int{}, map[string]int{}, map[Pair]int{}
	for _, m := range members {
		labels[m.Label]++
		groups[m.Group]++
		both[m]++
	}
	exact, same := 0, 0
	for m, n := range both {
		same += pairs(n)
		if n == labels[m.Label] && n == groups[m.Group] {
			exact += n
		}
	}
	return Score{
		Precision: share(same, allPairs(groups)), Recall: share(same, allPairs(labels)), Exact: share(exact, len(members)),
		Members: len(members), Labels: len(labels), Groups: len(groups),
	}
}

// Mean returns the mean of the shares over scores, which weighs every system alike, and the sums of
// the counts.
func Mean(scores []Score) Score {
	var sum Score
	n := float64(max(len(scores), 1))
	for _, s := range scores {
		sum.Precision += s.Precision / n
		sum.Recall += s.Recall / n
		sum.Exact += s.Exact / n
		sum.Members += s.Members
		sum.Labels += s.Labels
		sum.Groups += s.Groups
	}
	return sum
}

func pairs(n int) int { return n * (n - 1) / 2 }

func allPairs(sizes map[string]int) int {
	sum := 0
	for _, n := range sizes {
		sum += pairs(n)
	}
	return sum
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}
