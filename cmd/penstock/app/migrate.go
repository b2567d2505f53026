package app

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/db"
)

// migrateCommand migrates the database schema to the version of this program, as serve does.
type migrateCommand struct {
	Config string `help:"The configuration file." placeholder:"FILE"`
	Status bool   `help:"List the migrations without applying them."`
}

// Run lists the migrations. Unless Status is set, it applies them first.
func (m migrateCommand) Run(env client.Environment) (err error) {
	cfg, err := config.Load(m.Config, env.Variables)
	if err != nil {
		return err
	}
	open := db.Open
	if m.Status {
		if err := checkDatabases(cfg); err != nil {
			return err
		}
		open = db.Connect
	}
	database, err := open(env.Context, db.Options{URL: cfg.Database.URL, Dir: cfg.DataDir})
	if err != nil {
		return databaseURLError(err)
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	migrations, err := database.Migrations(env.Context)
	if err != nil {
		return err
	}
	for _, migration := range migrations {
		state := "pending"
		if migration.Applied {
			state = "applied"
		}
		if _, err := fmt.Fprintf(env.Stdout, "%04d %-10s %s\n", migration.Version, migration.Name, state); err != nil {
			return err
		}
	}
	return nil
}
