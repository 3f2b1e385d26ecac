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
	return family("migrate", "Make, change, show and check the schema of a store", `A store keeps its data in tables that numbered migrations make. Every command makes
them where there are none, if it may; these are for those who give that right to
nobody else, and for what comes with a newer nixie. Processes that migrate at once
take turns, and what was interrupted is run again.`,
		newMigrateUp(g), newMigrateDown(g), newMigrateStatus(g), newMigratePrint(g), newMigrateValidate(g))
}

// withSchema completes a command on the schema of the store that flags and environment name.
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

// migrationView is a migration as it is printed.
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
		{name: "applied_at", cell: func(m *v) string { return clock(m.AppliedAt) }},
	})(views, err)
}

func newMigrateUp(g *globals) *cobra.Command {
	var to int
	var grant string
	cmd := g.withSchema(&cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Long: `Applies what is missing, oldest first, and lists it. On PostgreSQL each migration is
one transaction that waits 2 s at most for the locks of others, and tries again; so
work goes on meanwhile. With --grant the role gets what it needs to run a store and
no more: it cannot change the tables, nor change or delete what the audit says.`,
		Example: `  nixie migrate up
  nixie migrate up --grant app --store postgres://owner@db.example/orders`,
	}, func(ctx context.Context, schema store.Schema) error {
		done, err := schema.Up(ctx, to, grant)
		return g.printMigrations(done, err, "migrations to apply")
	})
	cmd.Flags().IntVar(&to, "to", 0, "version to stop at (default the newest)")
	cmd.Flags().StringVar(&grant, "grant", "", "role of PostgreSQL that runs stores, to be given its rights")
	return cmd
}

func newMigrateDown(g *globals) *cobra.Command {
	var to int
	var lose bool
	var cmd *cobra.Command
	cmd = g.withSchema(&cobra.Command{
		Use:   "down --to VERSION",
		Short: "Undo migrations, newest first",
		Long: `Undoes the migrations above a version, newest first, and lists them; 0 undoes all.
Where the tables have rows it refuses, unless --lose-data says that they may go.`,
		Example: `  nixie migrate down --to 0 --lose-data`,
	}, func(ctx context.Context, schema store.Schema) error {
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
	return g.withSchema(&cobra.Command{
		Use:   "status",
		Short: "List the migrations and which of them are applied",
		Long: `Lists the migrations that this program knows. Exit code 3 when one of them is not
applied. A SQLite file does not say when.`,
		Example: `  nixie migrate status
  nixie migrate status -o jsonl | jq -r 'select(.applied | not) | .version'`,
	}, func(ctx context.Context, schema store.Schema) error {
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
	var grant string
	cmd := g.withSchema(&cobra.Command{
		Use:   "print",
		Short: "Print the SQL of the migrations, for other tools",
		Long: `Prints what up runs on an empty database, or down on one that is up to date, with the
name of the schema filled in. It connects to nothing.`,
		Example: `  nixie migrate print --grant app | psql
  nixie migrate print --down`,
	}, func(_ context.Context, schema store.Schema) error {
		sql, err := schema.Script(down, grant)
		return one(g, func(w io.Writer, s *script) { fmt.Fprint(w, s.SQL) })(script{sql}, err)
	})
	cmd.Flags().BoolVar(&down, "down", false, "what undoes them")
	cmd.Flags().StringVar(&grant, "grant", "", "with the rights of this role of PostgreSQL that runs stores")
	return cmd
}

func newMigrateValidate(g *globals) *cobra.Command {
	return g.withSchema(&cobra.Command{
		Use:   "validate",
		Short: "Compare the schema with what the migrations make",
		Long: `Names each table, column, index, constraint and view that differs from what the
applied migrations make, and changes nothing. Exit code 0 only without a difference.
On PostgreSQL it makes the schema a second time for a moment, in a transaction that is
undone, so the role has to be one that may; whether the data is whole is found out
by nixie verify.`,
		Example: `  nixie migrate validate
  nixie migrate validate -o jsonl | jq -r .subject`,
	}, func(ctx context.Context, schema store.Schema) error {
		found, err := schema.Validate(ctx)
		return cmp.Or(listed(g, "differences", []column[store.Violation]{
			{name: "rule", paint: func(*store.Violation) ink { return red }}, {name: "subject"}, {name: "text", kind: flex},
		})(found, err), exitIf(len(found) > 0, ExitFailure))
	})
}
