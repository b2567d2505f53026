package cache

import (
	"cmp"
	"crypto/tls"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// ParseURL parses the URL of Redis:
//
//	redis://[user:pass@]host[:6379][/db]         one server
//	rediss://…                                   the same over TLS
//	redis+sentinel://[user:pass@]host[:26379][,host…]/master[?db=0]
//	redis+cluster://[user:pass@]host[:6379][,host…]
//
// The user and password are those of Redis. ?sentinel_username= and ?sentinel_password= are
// the user and password of Sentinels, and ?tls=1 enables TLS for Sentinel and Cluster. Errors
// never contain the password.
func ParseURL(raw string) (*redis.UniversalOptions, error) {
	if raw == "" {
		raw = "redis://127.0.0.1:6379"
	}
	scheme, remaining, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, badURL("must begin with redis://, rediss://, redis+sentinel:// or redis+cluster://")
	}
	// net/url refuses several hosts with ports, so the hosts are removed before parsing.
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
		return nil, badURL("the user, password, path or query is not valid")
	}
	name, q, port := strings.Trim(u.Path, "/"), u.Query(), "6379"
	o := &redis.UniversalOptions{Username: u.User.Username()}
	o.Password, _ = u.User.Password()
	db := q.Get("db")
	switch {
	case (scheme == "redis" || scheme == "rediss") && strings.Contains(hosts, ","):
		return nil, badURL("several hosts need redis+sentinel:// or redis+cluster://")
	case scheme == "redis" || scheme == "rediss":
		db = cmp.Or(name, db)
	case scheme == "redis+sentinel" && (name == "" || strings.Contains(name, "/")):
		return nil, badURL("the path must be the master's name, as in redis+sentinel://host/mymaster")
	case scheme == "redis+sentinel":
		port, o.MasterName = "26379", name
		o.SentinelUsername, o.SentinelPassword = q.Get("sentinel_username"), q.Get("sentinel_password")
	case scheme == "redis+cluster":
		db, o.IsClusterMode = "", true
	default:
		return nil, badURL("unknown scheme " + strconv.Quote(scheme))
	}
	if db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return nil, badURL("the database must be a number")
		}
		o.DB = int(n)
	}
	if o.Addrs, err = addresses(strings.Split(hosts, ","), port); err != nil {
		return nil, err
	}
	if scheme == "rediss" || q.Get("tls") == "1" {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if len(o.Addrs) == 1 { // with several hosts, go-redis uses the host of each connection
			o.TLSConfig.ServerName = (&url.URL{Host: o.Addrs[0]}).Hostname()
		}
	}
	return o, nil
}

func addresses(hosts []string, port string) ([]string, error) {
	addrs := make([]string, 0, len(hosts))
	for _, h := range hosts {
		u, err := url.Parse("redis://" + h)
		if err != nil || u.Host != h || u.Hostname() == "" {
			return nil, badURL("host " + strconv.Quote(h) + " is not valid")
		}
		if u.Port() == "" {
			h = strings.TrimSuffix(h, ":") + ":" + port
		}
		addrs = append(addrs, h)
	}
	return addrs, nil
}

func badURL(reason string) error { return relay.Invalid("redis.url", reason) }
