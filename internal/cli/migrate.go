package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

func newMigrate(g *globals) *cobra.Command {
	return g.family("migrate", newMigrateUp(g), newMigrateDown(g), newMigrateStatus(g), newMigratePrint(g), newMigrateValidate(g))
}

// withSchema completes a command on the schema of the store that the flags or the environment name.
func (g *globals) withSchema(cmd *cobra.Command, do func(context.Context, store.Schema) error, groups ...flagGroup) *cobra.Command {
	return g.command(cmd, func(ctx context.Context, _ []string) error {
		url, err := config.StoreURL(g.store, g.Env)
		if err != nil {
			return err
		}
		schema, err := app.SchemaOf(url)
		if err != nil {
			return err
		}
		return do(ctx, schema)
	}, groups...)
}

// migrationView is the JSON of a migration.
type migrationView struct {
	Version   int              `json:"version"`
	Name      string           `json:"name"`
	Applied   bool             `json:"applied"`
	AppliedAt office.Timestamp `json:"applied_at"`
}

// printMigrations lists migrations.
func (g *globals) printMigrations(list []store.Migration, err error, noun string) error {
	type v = migrationView
	views := make([]v, len(list))
	for i, m := range list {
		views[i] = v{m.Version, m.Name, m.Applied, office.Timestamp{Time: m.At}}
	}
	return listed(g, noun, []column[v]{
		{name: "version"}, {name: "name", kind: flex}, {name: "applied"},
		{name: "applied_at"},
	})(views, err)
}

func newMigrateUp(g *globals) *cobra.Command {
	var to int
	var grants store.Grants
	cmd := g.withSchema(g.described("migrate up"), func(ctx context.Context, schema store.Schema) error {
		done, err := schema.Up(ctx, to, grants)
		return g.printMigrations(done, err, "migrations to apply")
	})
	cmd.Flags().IntVar(&to, "to", 0, "version to stop at (default the newest)")
	cmd.Flags().StringVar(&grants.Run, "grant", "", "role of PostgreSQL that runs stores, to be given its rights")
	cmd.Flags().StringVar(&grants.Enqueue, "grant-enqueue", "", "role of PostgreSQL that enqueues by SQL, to be given its rights")
	return cmd
}

func newMigrateDown(g *globals) *cobra.Command {
	var to int
	var lose bool
	var cmd *cobra.Command
	cmd = g.withSchema(g.described("migrate down"), func(ctx context.Context, schema store.Schema) error {
		done, err := schema.Down(ctx, to, lose)
		return g.printMigrations(done, err, "migrations to undo")
	}, checked(func() error {
		if !cmd.Flags().Changed("to") {
			return usagef("down to which version? give --to, with 0 for nothing at all")
		}
		return nil
	}))
	cmd.Flags().IntVar(&to, "to", 0, "version to stop at")
	cmd.Flags().BoolVar(&lose, "lose-data", false, "also where the tables have rows")
	return cmd
}

func newMigrateStatus(g *globals) *cobra.Command {
	return g.withSchema(g.described("migrate status"), func(ctx context.Context, schema store.Schema) error {
		list, err := schema.Migrations(ctx)
		if err := g.printMigrations(list, err, "migrations"); err != nil {
			return err
		}
		return exitIf(!list[len(list)-1].Applied, ExitThreshold)
	})
}

func newMigratePrint(g *globals) *cobra.Command {
	type script struct {
		SQL string `json:"sql"`
	}
	var down bool
	var grants store.Grants
	cmd := g.withSchema(g.described("migrate print"), func(_ context.Context, schema store.Schema) error {
		sql, err := schema.Script(down, grants)
		return one(g, func(w io.Writer, s *script) { fmt.Fprint(w, s.SQL) })(script{sql}, err)
	})
	cmd.Flags().BoolVar(&down, "down", false, "what undoes them")
	cmd.Flags().StringVar(&grants.Run, "grant", "", "with the rights of this role of PostgreSQL that runs stores")
	cmd.Flags().StringVar(&grants.Enqueue, "grant-enqueue", "", "with the rights of this role of PostgreSQL that enqueues by SQL")
	return cmd
}

func newMigrateValidate(g *globals) *cobra.Command {
	return g.withSchema(g.described("migrate validate"), func(ctx context.Context, schema store.Schema) error {
		found, err := schema.Validate(ctx)
		return cmp.Or(listed(g, "differences", []column[store.Violation]{
			{name: "rule", paint: func(*store.Violation) ink { return red }}, {name: "subject"}, {name: "text", kind: prose},
		})(found, err), exitIf(len(found) > 0, ExitFailure))
	})
}
