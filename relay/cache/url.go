package cache

import (
	"crypto/tls"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// ParseURL reads where Redis is:
//
//	redis://[user:pass@]host[:6379][/db]         one server
//	rediss://…                                   the same over TLS
//	redis+sentinel://[user:pass@]host[:26379][,host…]/master[?db=0]
//	redis+cluster://[user:pass@]host[:6379][,host…]
//
// The user and password are Redis's; Sentinels with a password of their own
// take ?sentinel_password= and ?sentinel_username=, and ?tls=1 makes either of
// the last two use TLS. An error never shows the password.
func ParseURL(raw string) (*redis.UniversalOptions, error) {
	if raw == "" {
		raw = "redis://127.0.0.1:6379"
	}
	scheme, remaining, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, badURL("want redis://, rediss://, redis+sentinel:// or redis+cluster://")
	}
	// net/url refuses several hosts with ports, so they are taken out first.
	authority, path, _ := strings.Cut(remaining, "/")
	authority, query, hasQuery := strings.Cut(authority, "?")
	if hasQuery {
		path = "?" + query
	}
	userinfo, hosts := "", authority
	if offset := strings.LastIndexByte(authority, '@'); offset >= 0 {
		userinfo, hosts = authority[:offset+1], authority[offset+1:]
	}
	u, err := url.Parse("redis://" + userinfo + "host/" + path)
	if err != nil {
		return nil, badURL("user, password, path or query is not a URL's")
	}
	return options(scheme, strings.Split(hosts, ","), u)
}

func options(scheme string, hosts []string, u *url.URL) (*redis.UniversalOptions, error) {
	name, q := strings.Trim(u.Path, "/"), u.Query()
	o := &redis.UniversalOptions{Username: u.User.Username()}
	o.Password, _ = u.User.Password()
	var err error
	switch scheme {
	case "redis", "rediss":
		err = single(o, hosts, name, q)
	case "redis+sentinel":
		err = sentinel(o, hosts, name, q)
	case "redis+cluster":
		o.IsClusterMode = true
		o.Addrs, err = addresses(hosts, "6379")
	default:
		err = badURL("unknown scheme " + strconv.Quote(scheme))
	}
	if err != nil {
		return nil, err
	}
	if scheme == "rediss" || q.Get("tls") == "1" {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName(o.Addrs)}
	}
	return o, nil
}

func single(o *redis.UniversalOptions, hosts []string, db string, q url.Values) (err error) {
	if len(hosts) != 1 {
		return badURL("several hosts need redis+sentinel:// or redis+cluster://")
	}
	if db == "" {
		db = q.Get("db")
	}
	if o.DB, err = database(db); err != nil {
		return err
	}
	o.Addrs, err = addresses(hosts, "6379")
	return err
}

func sentinel(o *redis.UniversalOptions, hosts []string, master string, q url.Values) (err error) {
	if master == "" || strings.Contains(master, "/") {
		return badURL("the path must be the master's name, as in redis+sentinel://host/mymaster")
	}
	o.MasterName = master
	o.SentinelUsername, o.SentinelPassword = q.Get("sentinel_username"), q.Get("sentinel_password")
	if o.DB, err = database(q.Get("db")); err != nil {
		return err
	}
	o.Addrs, err = addresses(hosts, "26379")
	return err
}

func database(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, badURL("the database must be a number")
	}
	return int(n), nil
}

func addresses(hosts []string, port string) ([]string, error) {
	texts := make([]string, 0, len(hosts))
	for _, h := range hosts {
		u, err := url.Parse("redis://" + h)
		if err != nil || u.Host != h || u.Hostname() == "" {
			return nil, badURL("host " + strconv.Quote(h))
		}
		if u.Port() == "" {
			h = strings.TrimSuffix(h, ":") + ":" + port
		}
		texts = append(texts, h)
	}
	return texts, nil
}

// serverName is the name to expect in the certificate of a single server; with
// several, each connection's own host is expected.
func serverName(addrs []string) string {
	if len(addrs) != 1 {
		return ""
	}
	u := url.URL{Host: addrs[0]}
	return u.Hostname()
}

func badURL(label string) error {
	return relay.Invalid("redis.url", label)
}
