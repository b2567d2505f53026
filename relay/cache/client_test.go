package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseURLReadsEveryForm(t *testing.T) {
	cases := []struct {
		name, url string
		addrs     []string
		db        int
		user      string
		password  string
		master    string
		cluster   bool
		tls       bool
	}{
		{"an empty URL is the local server", "", []string{"127.0.0.1:6379"}, 0, "", "", "", false, false},
		{"a server with user, password and database", "redis://u:p%40s@h:7000/3", []string{"h:7000"}, 3, "u", "p@s", "", false, false},
		{"a server by ?db", "redis://h?db=2", []string{"h:6379"}, 2, "", "", "", false, false},
		{"an IPv6 address over TLS", "rediss://:pw@[::1]:6380", []string{"[::1]:6380"}, 0, "", "pw", "", false, true},
		{"sentinels", "redis+sentinel://:pw@a:26379,b/mymaster?db=4", []string{"a:26379", "b:26379"}, 4, "", "pw", "mymaster", false, false},
		{"a cluster", "redis+cluster://:pw@a:7000,b:7001", []string{"a:7000", "b:7001"}, 0, "", "pw", "", true, false},
		{"a cluster of one node over TLS", "redis+cluster://a?tls=1", []string{"a:6379"}, 0, "", "", "", true, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			o, err := ParseURL(tc.url)
			if err != nil {
				t.Fatal(err)
			}
			relaytest.Equal(t, "o.Addrs", o.Addrs, tc.addrs)
			relaytest.Equal(t, "o.DB", o.DB, tc.db)
			relaytest.Equal(t, "o.Username", o.Username, tc.user)
			relaytest.Equal(t, "o.Password", o.Password, tc.password)
			relaytest.Equal(t, "o.MasterName", o.MasterName, tc.master)
			relaytest.Equal(t, "o.IsClusterMode", o.IsClusterMode, tc.cluster)
			relaytest.Equal(t, "whether o uses TLS", o.TLSConfig != nil, tc.tls)
		})
	}
}

func TestInvalidURLsAreRefused(t *testing.T) {
	for name, url := range map[string]string{
		"no scheme":                         "localhost:6379",
		"another scheme":                    "http://h",
		"two hosts for one server":          "redis://a,b",
		"an invalid host":                   "redis://a b",
		"an empty host":                     "redis+cluster://a,,b",
		"a database that is not a number":   "redis://h/x",
		"sentinels without a master":        "redis+sentinel://a,b",
		"a password with an invalid escape": "redis://:secret%zz@h",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseURL(url)
			if relay.KindOf(err) != relay.KindInvalid || len(relay.FieldsOf(err)["redis.url"]) == 0 {
				t.Errorf("error for %q = %v, want a problem of redis.url", url, err)
			}
			if strings.Contains(fmt.Sprint(err, relay.FieldsOf(err)), "secret") {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"redis://u:p@h:1/2", "redis+sentinel://a,b/m?db=1", "redis+cluster://[::1]:7000,b", "rediss://h?tls=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseURL(s)
		if err == nil && (len(o.Addrs) == 0 || slices.Contains(o.Addrs, "")) {
			t.Errorf("ParseURL(%q) returned no address", s)
		}
		if err != nil && relay.KindOf(err) != relay.KindInvalid {
			t.Errorf("error for %q = %v, want invalid", s, err)
		}
	})
}

func TestConnectionErrorsAreUnavailable(t *testing.T) {
	cases := []struct {
		name string
		err  error
		want relay.Kind
	}{
		{"a broken connection", io.EOF, relay.KindUnavailable},
		{"no answer in time", context.DeadlineExceeded, relay.KindUnavailable},
		{"a closed client", redis.ErrClosed, relay.KindUnavailable},
		{"a wrapped error", fmt.Errorf("x: %w", io.ErrUnexpectedEOF), relay.KindUnavailable},
		{"another error", errors.New("WRONGTYPE"), relay.KindUnexpected},
		{"an error with a kind", relay.Errorf(relay.KindConflict, "taken"), relay.KindConflict},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := wrap("thing", tc.err)
			if relay.KindOf(err) != tc.want || !strings.HasPrefix(err.Error(), "thing: ") {
				t.Errorf("error = %v of kind %v", err, relay.KindOf(err))
			}
		})
	}
	if wrap("thing", nil) != nil {
		t.Error("wrap(nil) returned an error")
	}
}

func TestAMissingServerIsUnavailable(t *testing.T) {
	db := openURL(t, fmt.Sprintf("redis://127.0.0.1:%d", porttest.Free(t)))
	_, errDeduplicate := deduplicate(t, db)
	_, _, errLatest := db.IoT().Latest(t.Context(), 1, "d")
	for _, err := range []error{db.Ping(t.Context()), db.Check(t.Context()), errDeduplicate, errLatest} {
		if relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(err.Error(), "Redis unavailable: dial tcp") {
			t.Errorf("error = %v, want unavailable", err)
		}
	}
}

// The logger of go-redis belongs to the whole process. A client must not change it.
func TestOpeningAClientKeepsTheLoggerOfTheProcess(t *testing.T) {
	var log relaytest.Buffer
	SetLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer SetLogger(slog.New(slog.DiscardHandler))
	db := openURL(t, fmt.Sprintf("redis://127.0.0.1:%d", porttest.Free(t)))
	if db.Ping(t.Context()) == nil {
		t.Error("Ping without a server returned no error")
	}
	if !log.Has("connection refused") {
		t.Errorf("log of go-redis = %q, want connection refused", log.String())
	}
}

func TestAServerWithoutMemoryIsUnavailable(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	_, err := deduplicate(t, openURL(t, server.URL))
	if relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error = %v, want unavailable", err)
	}
}

func TestARefusedClientIsUnavailableWithAdvice(t *testing.T) {
	startWith := func(commands ...[]any) *redistest.Server {
		server := redistest.Start(t)
		rdb := server.Client()
		t.Cleanup(func() { _ = rdb.Close() })
		for _, c := range commands {
			if err := rdb.Do(t.Context(), c...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		return server
	}
	limited := startWith([]any{"ACL", "SETUSER", "reader", "on", ">right", "~*", "&*", "+@read", "+info", "+config|get", "+eval", "+evalsha"})
	replicaOf := []any{"REPLICAOF", "127.0.0.1", porttest.Free(t)}
	replica := startWith(replicaOf)
	locked := startWith([]any{"CONFIG", "SET", "requirepass", "right"})
	for name, tc := range map[string]struct{ url, advice string }{
		"no password":           {locked.URL, "requires a password"},
		"a wrong password":      {"redis://:wrong@" + locked.Addr, "refused the user or password"},
		"a user without rights": {"redis://reader:right@" + limited.Addr, "lacks a right"},
		"a replica":             {replica.URL, "read-only replica"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openURL(t, tc.url)
			_, errDeduplicate := deduplicate(t, db)
			for _, err := range []error{db.Check(t.Context()), errDeduplicate} {
				if relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(err.Error(), tc.advice) {
					t.Errorf("error = %v of kind %v", err, relay.KindOf(err))
				}
			}
		})
	}
}

func TestALoadingServerIsUnavailable(t *testing.T) {
	err := wrap("thing", serverError("LOADING Redis is loading the dataset in memory"))
	if relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(err.Error(), "still loading its data") {
		t.Errorf("error = %v of kind %v", err, relay.KindOf(err))
	}
}

// serverError is an error reply of Redis.
type serverError string

func (e serverError) Error() string { return string(e) }
func (e serverError) RedisError()   {}

func TestAHangingServerIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	db, err := Open(Options{URL: server.URL, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	resume := server.Pause()
	if err := db.Ping(t.Context()); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error = %v, want unavailable", err)
	}
	resume()
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheckRefusesAnEvictingServer(t *testing.T) {
	good := redistest.Start(t)
	if err := openURL(t, good.URL).Check(t.Context()); err != nil {
		t.Errorf("error for a valid server = %v", err)
	}
	evicting := redistest.Start(t, "--maxmemory-policy", "allkeys-lru", "--rename-command", "CONFIG", "")
	err := openURL(t, evicting.URL).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "allkeys-lru") || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("error for an evicting server without CONFIG = %v", err)
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"6.0.16": false, "6.1.99": false, "6.2.0": true, "7.0.15": true, "8.0": true, "5.9": false, "": false, "x.y": false,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("error for version %q = %v, want supported %t", version, err, ok)
		}
	}
}

func TestTheCacheFollowsAFailover(t *testing.T) {
	set := redistest.StartSentinels(t)
	db := openURL(t, set.URL)
	if _, err := deduplicate(t, db); err != nil {
		t.Fatal(err)
	}
	set.Failover(t)
	redistest.Await(t, "the new master accepts writes", func(ctx context.Context) bool {
		_, err := deduplicate(t, db)
		return err == nil
	})
}

// deduplicate stores the record of a frame, which writes to Redis.
func deduplicate(t *testing.T, db *DB) ([]string, error) {
	t.Helper()
	return db.IoT().Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{{Device: "d", Dedup: "a", RecordID: "r"}}), time.Hour)
}
