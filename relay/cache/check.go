package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// Check returns an error if Redis cannot be used. The version must be 6.2 or later, and the
// maxmemory-policy must be noeviction, because any other policy drops parts of asynq's tasks
// when memory is short. If the server does not report its policy, Check logs a warning. On a
// cluster it checks every master. Then it writes a key, which fails on a replica, without
// free memory, and for a user without the right to write. Persistence is not required.
func (d *DB) Check(ctx context.Context) error {
	var err error
	if cluster, ok := d.rdb.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		var errs []error
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			if err := d.checkServer(ctx, c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", c.Options().Addr, err))
			}
			return nil
		})
		err = errors.Join(append(errs, wrap("", err))...)
	} else {
		err = d.checkServer(ctx, d.rdb)
	}
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	return errors.Join(err, wrap("write", d.rdb.Set(ctx, keyCheck(), "1", time.Minute).Err()))
}

func (d *DB) checkServer(ctx context.Context, c redis.Cmdable) error {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return wrap("", err)
	}
	info := make(map[string]string) // the lines "key:value"
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			info[k] = strings.TrimSpace(v)
		}
	}
	policy := info["maxmemory_policy"]
	if result, err := c.ConfigGet(ctx, "maxmemory-policy").Result(); err == nil && result["maxmemory-policy"] != "" {
		policy = result["maxmemory-policy"]
	}
	err = checkVersion(info["redis_version"])
	switch policy {
	case "noeviction":
	case "":
		d.log.WarnContext(ctx, "Redis does not report its maxmemory-policy; it must be noeviction")
	default:
		err = errors.Join(err, fmt.Errorf("Redis maxmemory-policy is %s, which drops queued tasks when memory is short; set it to noeviction", policy))
	}
	return err
}

func checkVersion(version string) error {
	major, remaining, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(remaining, ".")
	x, err1 := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("Redis version %q is invalid; 6.2 or later is needed", version)
	}
	if x < 6 || x == 6 && y < 2 {
		return fmt.Errorf("Redis version %s is too old; 6.2 or later is needed", version)
	}
	return nil
}

// wrap adds a label, unless it is empty, and a kind to an error: unavailable or unexpected. It
// returns nil for nil.
func wrap(label string, err error) error {
	if err == nil {
		return nil
	}
	if label != "" {
		label += ": "
	}
	if isUnavailable(err) {
		return relay.Errorf(relay.KindUnavailable, "%sRedis unavailable: %s%w", label, advice(err), err)
	}
	return relay.Errorf(relay.KindOf(err), "%s%w", label, err)
}

// isUnavailable reports whether an error means that the server cannot run commands now: it is
// down, starts, fails over, is out of memory or connections, cannot save its snapshot (MISCONF),
// has no master, or refuses the user or password of the gateway. The error of an invalid command
// does not mean that.
func isUnavailable(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	causes := []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		context.DeadlineExceeded, context.Canceled, redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
	}
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) }) || redis.IsAuthError(err) || redis.IsPermissionError(err) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) ||
		redis.IsOOMError(err) || redis.IsNoReplicasError(err) || redis.HasErrorPrefix(err, "MISCONF") ||
		err.Error() == "redis: all sentinels specified in configuration are unreachable"
}

func advice(err error) string {
	switch {
	case redis.IsAuthError(err):
		return "it requires a password, or refused the user or password of redis.url: "
	case redis.IsPermissionError(err):
		return "the user of redis.url lacks a right; it needs all commands on all keys and channels: "
	case redis.IsReadOnlyError(err):
		return "it is a read-only replica; redis.url must name the master or its Sentinels: "
	case redis.IsLoadingError(err):
		return "it is still loading its data: "
	case redis.IsOOMError(err):
		return "it is out of memory; raise its maxmemory: "
	case errors.Is(err, io.EOF):
		return "the server closed the connection; it may expect TLS (rediss://), or be another kind of server: "
	}
	return ""
}
