package river

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Again runs the jobs that died once more, and returns how many.
func Again(ctx context.Context, client *river.Client[pgx.Tx]) (int, error) {
	n := 0
	died := river.NewJobListParams().Kinds("ship-order").States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded).First(1000)
	for {
		list, err := client.JobList(ctx, died)
		if err != nil || len(list.Jobs) == 0 {
			return n, err
		}
		for _, job := range list.Jobs {
			if _, err := client.JobRetry(ctx, job.ID); err != nil {
				return n, err
			}
			n++
		}
	}
}
