package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Check reports whether the database can be relied on: that it takes writes, that no
// statement has found damage and,
// on PostgreSQL, that its version is 13 or later and no setting loses what was
// committed.
func (d *DB) Check(ctx context.Context) error {
	if d.writer != nil {
		if damage := d.damage.Load(); damage != nil {
			return *damage
		}
		return d.Run(ctx, "database", "UPDATE version SET n = n WHERE name = ''")
	}
	settings, err := Map[string, string](ctx, d, "database", `SELECT name, setting FROM pg_settings
WHERE name IN ('server_version_num', 'server_encoding', 'fsync', 'full_page_writes', 'synchronous_commit', 'transaction_read_only')`)
	if err != nil {
		return err
	}
	return checkSettings(settings)
}

func checkSettings(s map[string]string) error {
	var errs []error
	if v := s["server_version_num"]; len(v) < 6 || v < "130000" {
		errs = append(errs, fmt.Errorf("database: PostgreSQL %s is too old; 13 or later is needed", v))
	}
	if !strings.EqualFold(s["server_encoding"], "UTF8") {
		errs = append(errs, fmt.Errorf("database: its encoding is %s; create it with ENCODING 'UTF8'", s["server_encoding"]))
	}
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if s[name] == "off" {
			errs = append(errs, fmt.Errorf("database: %s is off, which loses what was acknowledged when the server crashes; set it to on", name))
		}
	}
	if s["transaction_read_only"] == "on" {
		errs = append(errs, errors.New("database: this PostgreSQL is a read-only standby; database.url must reach the primary"))
	}
	return errors.Join(errs...)
}
