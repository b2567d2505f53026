package cache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// Check reports whether Redis can be used: version 6.2 or later, and
// maxmemory-policy noeviction, since any other policy drops parts of asynq's
// tasks when memory is short. Persistence is not needed. On a cluster every
// master is looked at. A policy that the server does not report is only logged.
// At last it writes a key, which a replica, a server without memory and a user
// without rights refuse.
func (d *DB) Check(ctx context.Context) error {
	err := d.checkServers(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	return errors.Join(err, wrap("write", d.rdb.Set(ctx, keyCheck(), "1", time.Minute).Err()))
}

func (d *DB) checkServers(ctx context.Context) error {
	if cluster, ok := d.rdb.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		var found []error
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			if err := d.checkServer(ctx, c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, fmt.Errorf("%s: %w", c.Options().Addr, err))
			}
			return nil
		})
		return errors.Join(append(found, wrap("", err))...)
	}
	return d.checkServer(ctx, d.rdb)
}

func (d *DB) checkServer(ctx context.Context, c redis.Cmdable) error {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return wrap("", err)
	}
	info := parseInfo(text)
	policy := info["maxmemory_policy"]
	if result, err := c.ConfigGet(ctx, "maxmemory-policy").Result(); err == nil && result["maxmemory-policy"] != "" {
		policy = result["maxmemory-policy"]
	}
	if policy == "" {
		d.log.WarnContext(ctx, "Redis does not report its maxmemory-policy; it must be noeviction")
	}
	return errors.Join(checkVersion(info["redis_version"]), checkPolicy(policy))
}

// parseInfo reads the "key:value" lines of INFO.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok {
			info[k] = strings.TrimSpace(v)
		}
	}
	return info
}

func checkVersion(version string) error {
	major, remaining, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(remaining, ".")
	x, err1 := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("Redis version %q is not understood; 6.2 or later is needed", version)
	}
	if x < 6 || x == 6 && y < 2 {
		return fmt.Errorf("Redis version %s is too old; 6.2 or later is needed", version)
	}
	return nil
}

func checkPolicy(policy string) error {
	if policy != "" && policy != "noeviction" {
		return fmt.Errorf("Redis maxmemory-policy is %s, which drops queued tasks when memory is short; set it to noeviction", policy)
	}
	return nil
}
