package influx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
)

type server struct {
	version string
	v1      bool // 1.x: databases, InfluxQL
}

func (s *Store) language(sv server) Language {
	switch {
	case s.opts.Language != Auto:
		return s.opts.Language
	case sv.v1:
		return InfluxQL
	}
	return Flux
}

func forLanguage[F any](ctx context.Context, s *Store, flux, influxQL F) (F, error) {
	sv, err := s.server(ctx)
	if s.language(sv) == InfluxQL {
		return influxQL, err
	}
	return flux, err
}

// server returns the description of the server. It probes the server on the
// first call and after a failure, and creates a missing database on 1.x.
func (s *Store) server(ctx context.Context) (server, error) {
	if detected := s.detected.Load(); detected != nil {
		return *detected, nil
	}
	sv, err := s.probe(ctx)
	if err == nil && sv.v1 {
		err = s.createDatabase(ctx)
	}
	if err != nil {
		return server{}, s.wrapError("probe", err)
	}
	s.detected.Store(&sv)
	return sv, nil
}

// probe determines the version. Some builds return "unknown"; such a server is 1.x if it has
// no buckets.
func (s *Store) probe(ctx context.Context) (server, error) {
	var sv server
	if herr := s.get(ctx, "ping", func(r *http.Response) { sv.version = r.Header.Get("X-Influxdb-Version") }); herr != nil {
		return sv, herr
	}
	switch v := strings.TrimPrefix(sv.version, "v"); {
	case strings.HasPrefix(v, "1."):
		sv.v1 = true
	case strings.HasPrefix(v, "2.") || strings.HasPrefix(v, "3."):
	default:
		herr := s.get(ctx, "api/v2/buckets?limit=1", func(*http.Response) {})
		switch {
		case herr == nil || herr.StatusCode == http.StatusUnauthorized || herr.StatusCode == http.StatusForbidden:
		case herr.StatusCode == http.StatusNotFound:
			sv.v1 = true
		default:
			return sv, herr
		}
	}
	s.opts.Logger.InfoContext(ctx, "InfluxDB connected", "version", sv.version, "language", string(s.language(sv)))
	return sv, nil
}

func (s *Store) get(ctx context.Context, path string, onResponse func(*http.Response)) *httpapi.Error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.opts.URL+path, http.NoBody)
	if err != nil {
		return httpapi.NewError(err)
	}
	return s.http.DoHTTPRequest(req, nil, func(r *http.Response) error {
		defer func() { _ = r.Body.Close() }()
		onResponse(r)
		_, err := io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
		return err
	})
}

// createDatabase creates the database of 1.x if it is missing. A user with only write
// permission cannot create it. This is not an error; later writes fail if the database is missing.
func (s *Store) createDatabase(ctx context.Context) error {
	db, rp := s.database()
	databases, err := s.influxQL(ctx, statement{q: "SHOW DATABASES"})
	if err != nil {
		return err
	}
	for _, series := range databases {
		for _, row := range series.Values {
			if len(row) == 1 && row[0] == any(db) {
				return nil
			}
		}
	}
	q := "CREATE DATABASE " + quoteName(db)
	if rp != "" {
		q += " WITH NAME " + quoteName(rp)
	}
	_, err = s.influxQL(ctx, statement{q: q})
	if err == nil {
		s.opts.Logger.WarnContext(ctx, "InfluxDB database did not exist and was created; check the bucket setting if this is unexpected", "database", db)
	}
	if herr, ok := errors.AsType[*httpapi.Error](err); ok && herr.StatusCode == http.StatusForbidden {
		s.opts.Logger.WarnContext(ctx, "InfluxDB database not created", "database", db, "error", fmt.Sprint(err))
		return nil
	}
	return err
}
